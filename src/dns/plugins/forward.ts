/**
 * Passes questions on to the name servers of the host (L3), trying one after another. A server on a loopback address would be ourselves, or
 * nobody in this network namespace, and is left out; with no server left, outside names fail at once. Upstream: CoreDNS plugin/forward.
 */
import dgram from 'node:dgram'
import net from 'node:net'
import type { DnsAnswer } from '../message.ts'
import type { DnsPlugin } from './plugin.ts'

const timeoutMs = 2000
const failed: DnsAnswer = { code: 'SERVFAIL', authoritative: false, answers: [] }

/** The servers of a resolv.conf that can be asked from here. */
export function upstreamServers(resolvConf: string): string[] {
  const servers = [...resolvConf.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => match[1] ?? '')
  return servers.filter((server) => net.isIP(server) !== 0 && !/^(127\.|::1$|0\.0\.0\.0$)/.test(server))
}

export function createForwardPlugin(servers: () => Promise<readonly string[]>): DnsPlugin {
  return {
    name: 'forward',
    resolve: async (_question, query) => {
      for (const server of await servers()) {
        const raw = await ask(server, query)
        if (raw) return { raw }
      }
      return failed
    },
  }
}

/** One question over UDP from a fresh port; undefined when no answer to it comes in time. */
function ask(server: string, query: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = dgram.createSocket(net.isIPv6(server) ? 'udp6' : 'udp4')
    const finish = (answer?: Buffer) => {
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(finish, timeoutMs)
    socket.once('error', () => finish())
    socket.on('message', (answer) => {
      if (answer.length >= 12 && answer.readUInt16BE(0) === query.readUInt16BE(0)) finish(answer)
    })
    socket.connect(53, server, () => socket.send(query))
  })
}
