/**
 * Forwards queries to name servers (L3), those of the host or others, trying one after another. A server on a loopback address is left out: in
 * this network namespace that is this server or none. With no server left, outside names fail at once. Upstream: CoreDNS plugin/forward.
 */
import dgram from 'node:dgram'
import net from 'node:net'
import type { Clock } from '#base/clock'
import { type DnsPlugin, type DnsProtocol, isInZone, refused, serverFailure } from './plugin.ts'

const headerBytes = 12
const timeoutMs = 2000
/** Queries under way to other servers; more are refused. As `max_concurrent` of the Corefile that kubeadm installs. */
const defaultConcurrent = 1000
/** A server that did not answer is not asked again for this long, so that outside names fail at once where there is no outside. */
const silenceMs = 5000

/** The servers of a resolv.conf that can be asked from here. */
export function upstreamServers(resolvConf: string): string[] {
  const servers = [...resolvConf.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => match[1] ?? '')
  return servers.filter((server) => net.isIP(server) !== 0 && !/^(127\.|::1$|0\.0\.0\.0$)/.test(server))
}

export interface ForwardDeps {
  /** Addresses, with a port or without one. */
  readonly servers: () => Promise<readonly string[]>
  readonly clock: Clock
  /** Port of servers without one. Default 53. */
  readonly port?: number
  /** One question to one server; undefined when no answer comes in time. */
  readonly ask?: Ask
}

export interface ForwardOptions {
  /** Names that are forwarded. Default: all. */
  readonly zone?: string
  /** Zones within it that the next plugin answers. */
  readonly except?: readonly string[]
  readonly maxConcurrent?: number
  /** How servers are asked. Default: as the client asked. */
  readonly protocol?: DnsProtocol
  /** Whether servers take turns. Default: the first one that answers is asked. */
  readonly takesTurns?: boolean
}

export function createForwardPlugin({ servers, clock, port = 53, ask = askServer(port) }: ForwardDeps, options: ForwardOptions = {}): DnsPlugin {
  const { zone = '', except = [], maxConcurrent = defaultConcurrent, takesTurns = false } = options
  const silent = new SilentServers(clock)
  let underWay = 0
  let turn = 0
  const forward = async (query: Buffer, protocol: DnsProtocol) => {
    const all = await servers()
    const first = takesTurns && all.length > 0 ? turn++ % all.length : 0
    for (const server of [...all.slice(first), ...all.slice(0, first)]) {
      if (!silent.mayAsk(server)) continue
      const raw = await ask(server, query, protocol)
      silent.note(server, raw !== undefined)
      if (raw) return { raw }
    }
    return serverFailure
  }
  return {
    name: 'forward',
    resolve: async ({ name }, query, protocol) => {
      if (!isInZone(name, zone) || except.some((one) => isInZone(name, one))) return undefined
      if (underWay >= maxConcurrent) return refused
      underWay++
      try {
        return await forward(query, options.protocol ?? protocol)
      } finally {
        underWay--
      }
    },
  }
}

/** Servers that did not answer, each with the time until which it is not asked. */
class SilentServers {
  readonly #untilMs = new Map<string, number>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  mayAsk(server: string): boolean {
    const untilMs = this.#untilMs.get(server)
    if (untilMs === undefined) return true
    const nowMs = this.#clock.monotonicMs()
    if (nowMs < untilMs) return false
    // Only this question tries the server again; others skip it until the answer is here.
    this.#untilMs.set(server, nowMs + timeoutMs + silenceMs)
    return true
  }

  note(server: string, hasAnswered: boolean): void {
    if (hasAnswered) this.#untilMs.delete(server)
    else this.#untilMs.set(server, this.#clock.monotonicMs() + silenceMs)
  }
}

export type Ask = (server: string, query: Buffer, protocol: DnsProtocol) => Promise<Buffer | undefined>

/** An error counts as no answer: the next server is asked. */
function askServer(defaultPort: number): Ask {
  return (server, query, protocol) => {
    const { host, port = defaultPort } = addressOf(server)
    return protocol === 'udp' ? askOverUdp(host, port, query) : askOverTcp(host, port, query)
  }
}

/** An address with or without a port, of IPv6 in brackets before one. */
export function addressOf(server: string): { readonly host: string; readonly port?: number } {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(server) ?? []
  return port === undefined ? { host: server } : { host: bracketed ?? plain ?? '', port: Number(port) }
}

/** One question over UDP from a fresh port. */
function askOverUdp(server: string, port: number, query: Buffer): Promise<Buffer | undefined> {
  const socket = dgram.createSocket(net.isIPv6(server) ? 'udp6' : 'udp4')
  return withinTimeout(
    (finish) => {
      socket.on('error', () => finish())
      socket.on('message', (answer) => {
        if (answers(answer, query)) finish(answer)
      })
      // Without a route to the server, connecting fails here and not as an event.
      socket.connect(port, server, (error?: Error) => {
        if (error) finish()
        else socket.send(query)
      })
    },
    () => socket.close(),
  )
}

/** One question over a new TCP connection, for clients that asked over TCP because the answer is long. */
function askOverTcp(server: string, port: number, query: Buffer): Promise<Buffer | undefined> {
  const socket = net.connect({ host: server, port })
  return withinTimeout(
    (finish) => {
      let received: Buffer = Buffer.alloc(0)
      const length = Buffer.alloc(2)
      length.writeUInt16BE(query.length)
      socket.write(Buffer.concat([length, query]))
      socket.on('error', () => finish())
      socket.on('close', () => finish())
      socket.on('data', (chunk) => {
        received = Buffer.concat([received, chunk])
        if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
        const answer = received.subarray(2, 2 + received.readUInt16BE(0))
        finish(answers(answer, query) ? answer : undefined)
      })
    },
    () => socket.destroy(),
  )
}

type Finish = (answer?: Buffer) => void

function withinTimeout(start: (finish: Finish) => void, close: () => void): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    let finished = false
    const finish: Finish = (answer) => {
      if (finished) return
      finished = true
      clearTimeout(timer)
      close()
      resolve(answer)
    }
    const timer = setTimeout(finish, timeoutMs)
    start(finish)
  })
}

/** Whether a message is the answer to a query: same id, and the same question where it repeats one. */
function answers(answer: Buffer, query: Buffer): boolean {
  if (answer.length < headerBytes || answer.readUInt16BE(0) !== query.readUInt16BE(0) || ((answer[2] ?? 0) & 0x80) === 0) return false
  if (answer.readUInt16BE(4) === 0) return true
  const end = questionEnd(query)
  return answer.toString('latin1', headerBytes, end).toLowerCase() === query.toString('latin1', headerBytes, end).toLowerCase()
}

/** Index after the first question of a query that has been read already: its name in labels, type and class. */
function questionEnd(query: Buffer): number {
  let at = headerBytes
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) at += length + 1
  return at + 5
}
