/**
 * Forwards queries to the name servers of the host (L3), trying one after another. A server on a loopback address is left out: in
 * this network namespace that is this server or none. With no server left, outside names fail at once. Upstream: CoreDNS plugin/forward.
 */
import dgram from 'node:dgram'
import net from 'node:net'
import type { Clock } from '#base/clock'
import type { DnsAnswer } from '../message.ts'
import type { DnsPlugin } from './plugin.ts'

const timeoutMs = 2000
/** A server that did not answer is not asked again for this long, so that outside names fail at once where there is no outside. */
const silenceMs = 5000
const failed: DnsAnswer = { code: 'SERVFAIL', authoritative: false, answers: [] }

/** The servers of a resolv.conf that can be asked from here. */
export function upstreamServers(resolvConf: string): string[] {
  const servers = [...resolvConf.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => match[1] ?? '')
  return servers.filter((server) => net.isIP(server) !== 0 && !/^(127\.|::1$|0\.0\.0\.0$)/.test(server))
}

export interface ForwardDeps {
  readonly servers: () => Promise<readonly string[]>
  readonly clock: Clock
  /** One question to one server; undefined when no answer comes in time. */
  readonly ask?: (server: string, query: Buffer) => Promise<Buffer | undefined>
}

export function createForwardPlugin({ servers, clock, ask = askOverUdp }: ForwardDeps): DnsPlugin {
  /** Until when a silent server is left alone. */
  const silentUntilMs = new Map<string, number>()
  return {
    name: 'forward',
    resolve: async (_question, query) => {
      for (const server of await servers()) {
        const nowMs = clock.monotonicMs()
        const until = silentUntilMs.get(server)
        if (until !== undefined) {
          if (nowMs < until) continue
          // This question finds out whether it is back; those that come meanwhile need not wait for the answer.
          silentUntilMs.set(server, nowMs + timeoutMs + silenceMs)
        }
        const raw = await ask(server, query)
        if (raw) {
          silentUntilMs.delete(server)
          return { raw }
        }
        silentUntilMs.set(server, clock.monotonicMs() + silenceMs)
      }
      return failed
    },
  }
}

/** One question over UDP from a fresh port. */
function askOverUdp(server: string, query: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = dgram.createSocket(net.isIPv6(server) ? 'udp6' : 'udp4')
    let finished = false
    const finish = (answer?: Buffer) => {
      if (finished) return
      finished = true
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(finish, timeoutMs)
    socket.on('error', () => finish())
    socket.on('message', (answer) => {
      if (answer.length >= 12 && answer.readUInt16BE(0) === query.readUInt16BE(0)) finish(answer)
    })
    // Without a route to the server, connecting fails here and not as an event.
    socket.connect(53, server, (error?: Error) => {
      if (error) finish()
      else socket.send(query)
    })
  })
}
