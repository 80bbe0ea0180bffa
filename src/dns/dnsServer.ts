/**
 * The cluster's DNS server (L3) over UDP and TCP: asks its plugins in order. Every node runs one; together they are the Service kube-dns.
 * Upstream: CoreDNS, as kubeadm configures it.
 */
import dgram from 'node:dgram'
import net from 'node:net'
import { abortScope } from '#base/abortScope'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { type DnsQuestion, readQuestion, writeAnswer, writeError } from './message.ts'
import type { DnsPlugin, DnsProtocol } from './plugins/plugin.ts'

export interface DnsServerOptions {
  readonly plugins: readonly DnsPlugin[]
  readonly addresses: readonly string[]
  readonly port: number
  readonly log: Logger
  readonly metrics: Metrics
}

const tcpIdleMs = 10_000
const maxTcpConnections = 256
const maxTcpBytes = 65_535

/** Listens until the signal aborts. Rejects when an address cannot be bound. */
export async function runDnsServer(options: DnsServerOptions, signal: AbortSignal): Promise<void> {
  const requests = options.metrics.counter({ name: 'coredns_dns_requests_total', help: 'DNS requests, by type and transport.', labels: ['type', 'proto'] })
  const answer = async (query: Buffer, maxBytes: (question: DnsQuestion) => number, proto: DnsProtocol): Promise<Buffer | undefined> => {
    const question = readQuestion(query)
    if (!question) return query.length >= 12 ? writeError(query, 'FORMERR') : undefined
    // Clients may ask for any of 65,536 types. As in CoreDNS, those without a name here are one series.
    requests.inc({ type: question.type.startsWith('TYPE') ? 'other' : question.type, proto })
    try {
      for (const plugin of options.plugins) {
        const result = await plugin.resolve(question, query, proto)
        if (result) return 'raw' in result ? result.raw : writeAnswer(question, result, maxBytes(question))
      }
      return writeError(query, 'REFUSED')
    } catch (error) {
      options.log.error(error, 'Failed to answer a DNS question', { question: question.name, type: question.type })
      return writeError(query, 'SERVFAIL')
    }
  }
  using failure = abortScope(signal)
  const until = failure.signal
  const stopped = options.addresses.flatMap((address) => [
    serveUdp(address, options.port, (query) => answer(query, (question) => question.udpSize, 'udp'), until),
    serveTcp(address, options.port, (query) => answer(query, () => maxTcpBytes, 'tcp'), until),
  ])
  try {
    await Promise.all(stopped)
  } catch (error) {
    // Close the listeners that did bind: otherwise the next attempt finds their addresses in use.
    failure.abort(error)
    await Promise.allSettled(stopped)
    throw error
  }
}

type Responder = (query: Buffer) => Promise<Buffer | undefined>

function serveUdp(address: string, port: number, respond: Responder, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket(net.isIPv6(address) ? 'udp6' : 'udp4')
    socket.on('message', (query, from) => {
      void respond(query).then((bytes) => {
        if (bytes && !signal.aborted) socket.send(bytes, from.port, from.address, () => {})
      })
    })
    socket.on('error', reject)
    socket.bind(port, address)
    onAbort(signal, () => socket.close(() => resolve()))
  })
}

function serveTcp(address: string, port: number, respond: Responder, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const sockets = new Set<net.Socket>()
    const server = net.createServer((socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      socket.setTimeout(tcpIdleMs, () => socket.destroy())
      serveConnection(socket, respond).catch(() => socket.destroy())
    })
    server.maxConnections = maxTcpConnections
    server.once('error', reject)
    server.listen(port, address)
    onAbort(signal, () => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  })
}

/** Answers one question after the other. While a client does not read its answers, its questions are not read. */
async function serveConnection(socket: net.Socket, respond: Responder): Promise<void> {
  let buffered: Buffer = Buffer.alloc(0)
  for await (const chunk of socket) {
    buffered = Buffer.concat([buffered, chunk as Buffer])
    while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
      const query = buffered.subarray(2, 2 + buffered.readUInt16BE(0))
      buffered = buffered.subarray(2 + query.length)
      const answer = await respond(Buffer.from(query))
      if (!answer) continue
      const length = Buffer.alloc(2)
      length.writeUInt16BE(answer.length)
      if (!socket.write(Buffer.concat([length, answer]))) await drained(socket)
    }
  }
}

function drained(socket: net.Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new Error('the client is gone'))
    socket.once('close', gone)
    socket.once('drain', () => {
      socket.off('close', gone)
      resolve()
    })
  })
}

function onAbort(signal: AbortSignal, fn: () => void): void {
  if (signal.aborted) fn()
  else signal.addEventListener('abort', fn, { once: true })
}
