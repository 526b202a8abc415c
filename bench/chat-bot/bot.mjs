// Participants of XMPP rooms over WebSocket, for comparison with throng: all in one process, one connection each.
//
//   node bot.mjs URL DOMAIN ROOM COUNT PER_SECOND SECONDS [ltx|scan]
//
// `{stream}` in ROOM is the number of one of ROOMS rooms (environment, 1), in turn. Each joins as ConverseJS does (SASL ANONYMOUS,
// bind, session, disco#info, roster, vCards, disco#items, presence, x-roomuser-item, carbons, MUC without history, archive), pings
// after 25 s of silence, and stays until SECONDS have passed. `ltx` reads stanzas with the parser of xmpp.js, `scan` looks only
// at the beginning of each. At the end a line of JSON: participants, in the room, presences, stanzas, bytes, peak memory in kB.

import { randomUUID } from "node:crypto"
import { parse } from "ltx"
import WebSocket from "ws"

const [url, domain, roomTemplate, count, rate, seconds, reader = "ltx"] = process.argv.slice(2)
const rooms = Number(process.env.ROOMS ?? 1)
const totals = { presences: 0, stanzas: 0, bytes: 0, messages: 0, broken: 0 }

const escape = text => text.replace(/[&<>"']/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" })[c])

// A stanza as far as a participant has to know it.
const readers = {
  ltx(frame) {
    const root = parse(frame)
    const statuses = root.name === "presence" ? root.getChild("x", "http://jabber.org/protocol/muc#user")?.getChildren("status") : undefined
    return {
      name: root.name, id: root.attrs.id, type: root.attrs.type, from: root.attrs.from,
      isOwn: Boolean(statuses?.some(status => status.attrs.code === "110")),
      jid: () => root.getChild("bind")?.getChildText("jid"),
      mechanisms: () => root.getChild("mechanisms") !== undefined,
    }
  },
  scan(frame) {
    const tag = frame.slice(0, frame.indexOf(">"))
    const attribute = name => new RegExp(` ${name}=["']([^"']*)`).exec(tag)?.[1]
    const name = /^<([^\s/>]+)/.exec(tag)[1]
    return {
      name, get id() { return attribute("id") }, get type() { return attribute("type") }, get from() { return attribute("from") },
      isOwn: name === "presence" && frame.includes("code='110'"),
      jid: () => /<jid>([^<]*)/.exec(frame)?.[1],
      mechanisms: () => frame.includes("<mechanisms"),
    }
  },
}
const read = readers[reader]

class Participant {
  constructor(number) {
    this.nick = `Anonymous ${100000 + number}`
    this.room = roomTemplate.replace("{stream}", number % rooms)
    this.others = new Set()
    this.asked = new Map()
    this.joined = false
    this.socket = new WebSocket(url, ["xmpp"], { origin: url.replace("ws", "http").replace(/(?<=\/\/[^/]*)\/.*/, ""), perMessageDeflate: false })
    this.socket.on("open", () => this.send(this.opening()))
    this.socket.on("message", data => this.frame(data))
    this.socket.on("error", () => { totals.broken++ })
  }

  opening() { return `<open to="${domain}" version="1.0" xmlns="urn:ietf:params:xml:ns:xmpp-framing"/>` }
  send(frame) { this.socket.send(frame) }

  ask(payload, { type = "get", to, from, then } = {}) {
    const id = `${randomUUID()}:sendIQ`
    if (then) this.asked.set(id, then)
    this.send(`<iq${from ? ` from="${escape(this.jid)}"` : ""} id="${id}"${to ? ` to="${escape(to)}"` : ""} type="${type}" xmlns="jabber:client">${payload}</iq>`)
  }

  frame(data) {
    totals.stanzas++
    totals.bytes += data.length
    this.heard = Date.now()
    const stanza = read(data.toString())
    switch (stanza.name) {
      case "presence": return this.presence(stanza)
      case "message": return void totals.messages++
      case "iq": {
        const then = this.asked.get(stanza.id)
        this.asked.delete(stanza.id)
        return then?.(stanza)
      }
      case "stream:features":
        if (stanza.mechanisms()) return this.send('<auth mechanism="ANONYMOUS" xmlns="urn:ietf:params:xml:ns:xmpp-sasl"/>')
        return this.ask('<bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"/>', { type: "set", then: bound => this.bound(bound) })
      case "success": return this.send(this.opening())
    }
  }

  bound(stanza) {
    this.jid = stanza.jid()
    this.ask('<session xmlns="urn:ietf:params:xml:ns:xmpp-session"/>', { type: "set", then: () => this.online() })
  }

  online() {
    const info = '<query xmlns="http://jabber.org/protocol/disco#info"/>', vcard = '<vCard xmlns="vcard-temp"/>'
    this.ask(info, { to: domain, from: true, then: () => {
      this.ask('<query xmlns="http://jabber.org/protocol/disco#items"/>', { to: domain, from: true })
      this.send(`<presence xmlns="jabber:client"><priority>0</priority>${CAPS}</presence>`)
    } })
    this.ask('<query xmlns="jabber:iq:roster"/>')
    this.ask(vcard)
    this.ask(vcard, { to: this.room })
    this.ask(info, { to: this.room, from: true, then: () => {
      this.ask('<query node="x-roomuser-item" xmlns="http://jabber.org/protocol/disco#info"/>', { to: this.room, from: true, then: () => this.join() })
      this.ask('<enable xmlns="urn:xmpp:carbons:2"/>', { type: "set", from: true })
    } })
  }

  join() {
    this.send(`<presence from="${escape(this.jid)}" id="${randomUUID()}" to="${escape(`${this.room}/${this.nick}`)}" xmlns="jabber:client">` +
      `<x xmlns="http://jabber.org/protocol/muc"><history maxstanzas="0"/></x>${CAPS}</presence>`)
  }

  presence({ from, type, isOwn }) {
    totals.presences++
    const nick = from?.startsWith(`${this.room}/`) ? from.slice(this.room.length + 1) : undefined
    if (nick === undefined) return
    if (isOwn && !this.joined) {
      this.joined = true
      const form = '<x type="submit" xmlns="jabber:x:data"><field type="hidden" var="FORM_TYPE"><value>urn:xmpp:mam:2</value></field></x>'
      const page = '<set xmlns="http://jabber.org/protocol/rsm"><before></before><max>50</max></set>'
      this.ask(`<query queryid="${randomUUID()}" xmlns="urn:xmpp:mam:2">${form}${page}</query>`, { type: "set", to: this.room })
      this.pings = setInterval(() => {
        if (Date.now() - this.heard >= 25_000) this.ask('<ping xmlns="urn:xmpp:ping"/>', { to: domain })
      }, 1000)
    } else if (type === "unavailable") this.others.delete(nick)
    else this.others.add(nick)
  }

  leave() {
    clearInterval(this.pings)
    this.socket.removeAllListeners("message")
    this.send('<close xmlns="urn:ietf:params:xml:ns:xmpp-framing"/>')
    this.socket.close()
  }
}
const CAPS = '<c hash="sha-1" node="https://conversejs.org" ver="vFjUiQWh2ew0hsRBxf7LNFK8ol0=" xmlns="http://jabber.org/protocol/caps"/>'

const began = performance.now(), participants = []
const arrivals = setInterval(() => {
  const due = Math.min(Number(count), Math.floor((performance.now() - began) / 1000 * Number(rate)) + 1)
  while (participants.length < due) participants.push(new Participant(participants.length))
  if (participants.length >= Number(count)) clearInterval(arrivals)
}, 10)
setTimeout(() => {
  const joined = participants.filter(participant => participant.joined).length
  const report = { participants: participants.length, joined, ...totals, memory_kb: process.resourceUsage().maxRSS }
  participants.forEach(participant => { try { participant.leave() } catch { /* it never came up */ } })
  console.log(JSON.stringify(report))
  setTimeout(() => process.exit(0), 500)
}, Number(seconds) * 1000)
