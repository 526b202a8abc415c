// A bucket of an S3 server on this machine, as PeerTube fills it with a live: segments, playlists and hashes are objects
// that everyone may read, pages of every origin too.

import { createHash, createHmac } from "node:crypto"
import http from "node:http"

const REGION = "us-east-1"
const TYPES = { m3u8: "application/vnd.apple.mpegurl", ts: "video/mp2t", mp4: "video/mp4", json: "application/json" }
const policy = bucket => JSON.stringify({
  Version: "2012-10-17",
  Statement: [{ Effect: "Allow", Principal: "*", Action: "s3:GetObject", Resource: `arn:aws:s3:::${bucket}/*` }],
})
const CORS = "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>" +
  "<AllowedMethod>HEAD</AllowedMethod><AllowedHeader>*</AllowedHeader></CORSRule></CORSConfiguration>"

const sha256 = data => createHash("sha256").update(data).digest("hex")
const hmac = (key, text) => createHmac("sha256", key).update(text).digest()

export class Bucket {
  // `prefix` is that of its keys, with a slash at its end.
  constructor({ port, bucket, prefix, access, secret }) {
    Object.assign(this, { port, bucket, prefix, access, secret, stored: new Set() })
    this.agent = new http.Agent({ keepAlive: true })
  }

  url(name) { return `http://127.0.0.1:${this.port}/${this.bucket}/${this.prefix}${name}` }

  async prepare() {
    await this.request("PUT", "").catch(error => { if (!error.message.includes("BucketAlreadyOwnedByYou")) throw error })
    await this.request("PUT", "", { query: "policy", body: policy(this.bucket) })
    await this.request("PUT", "", { query: "cors", body: CORS })
  }

  async put(name, body) {
    await this.request("PUT", `/${this.prefix}${name}`, { body, headers: { "content-type": TYPES[name.split(".").at(-1)] } })
    this.stored.add(name)
  }

  async delete(name) {
    await this.request("DELETE", `/${this.prefix}${name}`)
    this.stored.delete(name)
  }

  // With an AWS Signature Version 4; the rest of the path is that of the bucket.
  request(method, rest, { query = "", body = "", headers = {} } = {}) {
    const path = `/${this.bucket}${rest}`, at = new Date().toISOString().replace(/[-:]|\.\d+/g, ""), date = at.slice(0, 8)
    const signed = { host: `127.0.0.1:${this.port}`, "x-amz-content-sha256": sha256(body), "x-amz-date": at }
    const names = Object.keys(signed).join(";"), scope = `${date}/${REGION}/s3/aws4_request`
    const canonical = [
      method, path, query && `${query}=`, ...Object.entries(signed).map(([name, value]) => `${name}:${value}`), "", names,
      signed["x-amz-content-sha256"],
    ].join("\n")
    const key = scope.split("/").reduce(hmac, `AWS4${this.secret}`)
    const signature = hmac(key, ["AWS4-HMAC-SHA256", at, scope, sha256(canonical)].join("\n")).toString("hex")
    const authorization = `AWS4-HMAC-SHA256 Credential=${this.access}/${scope}, SignedHeaders=${names}, Signature=${signature}`
    const all = {
      ...signed, ...headers, authorization, "content-length": Buffer.byteLength(body),
      "content-md5": createHash("md5").update(body).digest("base64"), "user-agent": "stand",
    }
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port: this.port, agent: this.agent, method, path: path + (query && `?${query}`), headers: all, timeout: 20_000 }
      const request = http.request(options, async answer => {
        const parts = []
        for await (const part of answer) parts.push(part)
        if (answer.statusCode < 300) return resolve()
        reject(new Error(`${method} ${path}: ${answer.statusCode} ${Buffer.concat(parts).toString().slice(0, 200)}`))
      })
      request.on("timeout", () => request.destroy(new Error("no answer within 20 s")))
      request.on("error", error => reject(new Error(`${method} ${path}: ${error.message}`)))
      request.end(body)
    })
  }
}
