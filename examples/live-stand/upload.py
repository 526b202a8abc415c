#!/usr/bin/env python3
"""Copies a live HLS folder to a bucket of an S3 server on this machine, as it changes.

usage: upload.py FOLDER http://127.0.0.1:PORT/BUCKET/PREFIX
       (keys: S3_ACCESS_KEY, S3_SECRET_KEY)

As a streaming server does it: each new segment is put, then the playlist that names it, and what
has left the playlists is deleted. The bucket is made if it is missing; everyone may read its
objects, pages of every origin too.
"""

import base64
import datetime
import hashlib
import hmac
import http.client
import os
import pathlib
import sys
import time
import urllib.parse

REGION = "us-east-1"
TYPES = {
    ".m3u8": "application/vnd.apple.mpegurl",
    ".ts": "video/mp2t",
    ".m4s": "video/mp4",
    ".mp4": "video/mp4",
}
POLICY = (
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*",'
    '"Action":"s3:GetObject","Resource":"arn:aws:s3:::%s/*"}]}'
)
CORS = (
    "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET"
    "</AllowedMethod>"
    "<AllowedMethod>HEAD</AllowedMethod><AllowedHeader>*</AllowedHeader></CORSRule>"
    "</CORSConfiguration>"
)


class Bucket:
    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.host = parts.netloc
        self.name, _, self.prefix = parts.path.strip("/").partition("/")
        self.access, self.secret = os.environ["S3_ACCESS_KEY"], os.environ["S3_SECRET_KEY"]
        self.connection = http.client.HTTPConnection(self.host, timeout=20)

    def request(self, method, key="", query="", body=b"", headers=()):
        """A request with an AWS Signature Version 4. Raises OSError unless the answer is 2xx."""
        path = "/" + "/".join(part for part in (self.name, key) if part)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        signed = {
            "host": self.host,
            "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
            "x-amz-date": now,
        }
        names = ";".join(signed)
        canonical = "\n".join(
            [
                method,
                path,
                f"{query}=" if query else "",
                *(f"{name}:{value}" for name, value in signed.items()),
                "",
            ]
            + [names, signed["x-amz-content-sha256"]]
        )
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        to_sign = "\n".join(
            ["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()]
        )
        secret = b"AWS4" + self.secret.encode()
        for part in scope.split("/"):
            secret = hmac.digest(secret, part.encode(), "sha256")
        signature = hmac.digest(secret, to_sign.encode(), "sha256").hex()
        signed["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.access}/{scope}, SignedHeaders={names},"
            f" Signature={signature}"
        )
        signed["content-md5"] = base64.b64encode(hashlib.md5(body).digest()).decode()
        try:
            self.connection.request(
                method, path + (f"?{query}" if query else ""), body, {**signed, **dict(headers)}
            )
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise OSError(f"{method} {path}: {error!r}") from error
        if not 200 <= answer.status < 300:
            raise OSError(
                f"{method} {path}: {answer.status} {content.decode(errors='replace')[:200]}"
            )

    def prepare(self):
        try:
            self.request("PUT")
        except OSError as error:
            if "BucketAlreadyOwnedByYou" not in str(error):
                raise
        self.request("PUT", query="policy", body=(POLICY % self.name).encode())
        self.request("PUT", query="cors", body=CORS.encode())

    def key(self, name):
        return f"{self.prefix}/{name}" if self.prefix else name

    def put(self, name, body):
        suffix = pathlib.PurePath(name).suffix
        caching = "no-cache" if suffix == ".m3u8" else "max-age=60"
        headers = {
            "content-type": TYPES.get(suffix, "application/octet-stream"),
            "cache-control": caching,
        }
        self.request("PUT", self.key(name), body=body, headers=headers)

    def delete(self, name):
        self.request("DELETE", self.key(name))


def names_in(playlist):
    return [line for line in playlist.decode().splitlines() if line and not line.startswith("#")]


def main():
    folder, bucket = pathlib.Path(sys.argv[1]), Bucket(sys.argv[2])
    bucket.prepare()
    print(f"{folder} -> {sys.argv[2]}", flush=True)
    # What the bucket has: the playlists with their bytes, and for each media playlist its segments,
    # oldest first.
    playlists, segments = {}, {}
    while True:
        for path in sorted(folder.glob("*.m3u8")):
            try:
                body = path.read_bytes()
                if playlists.get(path.name) == body:
                    continue
                listed = names_in(body)
                if not all(name.endswith(".m3u8") for name in listed):
                    known = segments.setdefault(path.name, [])
                    for name in listed:
                        if name not in known:
                            bucket.put(name, (folder / name).read_bytes())
                            known.append(name)
                bucket.put(path.name, body)
                playlists[path.name] = body
                # A player may still read a segment that has just left the playlist.
                for name in [name for name in segments.get(path.name, []) if name not in listed][
                    :-1
                ]:
                    bucket.delete(name)
                    segments[path.name].remove(name)
            except OSError as error:
                print(error, file=sys.stderr, flush=True)
        time.sleep(0.2)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
