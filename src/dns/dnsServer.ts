/**
 * The cluster's DNS server (L3) over UDP and TCP. Every node runs one; together they are the Service kube-dns.
 * Upstream: CoreDNS, as kubeadm configures it.
 */
import dgram from 'node:dgram'
import net from 'node:net'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { exponentialBuckets, type Metrics } from '#base/metrics'
import { type DnsQuestion, readQuestion, responseCodes, writeAnswer, writeError } from './message.ts'
import { type DnsProtocol, type DnsResolver, recordsOf } from './plugins/plugin.ts'

export interface DnsServerOptions {
  readonly resolve: DnsResolver
  readonly clock: Clock
  readonly addresses: readonly string[]
  readonly port: number
  readonly log: Logger
  readonly metrics: Metrics
}

const codeNames = new Map<number, string>(Object.entries(responseCodes).map(([name, number]) => [number, name]))
const tcpIdleMs = 10_000
const maxTcpConnections = 256
const maxTcpBytes = 65_535

/** Listens until the signal aborts. Rejects when an address cannot be bound. */
export async function runDnsServer(options: DnsServerOptions, signal: AbortSignal): Promise<void> {
  const { clock, metrics } = options
  const requests = metrics.counter({ name: 'coredns_dns_requests_total', help: 'DNS requests, by type and transport.', labels: ['type', 'proto'] })
  const responses = metrics.counter({ name: 'coredns_dns_responses_total', help: 'DNS responses, by response code.', labels: ['rcode'] })
  const duration = metrics.histogram({
    name: 'coredns_dns_request_duration_seconds',
    help: 'Time to answer a DNS request.',
    buckets: exponentialBuckets(0.00025, 2, 16),
  })
  const answer = async (query: Buffer, maxBytes: (question: DnsQuestion) => number, proto: DnsProtocol): Promise<Buffer | undefined> => {
    const startedMs = clock.monotonicMs()
    const bytes = await respond(query, maxBytes, proto)
    if (bytes) responses.inc({ rcode: codeNames.get((bytes[3] ?? 0) & 0xf) ?? 'other' })
    duration.observe((clock.monotonicMs() - startedMs) / 1000)
    return bytes
  }
  const respond = async (query: Buffer, maxBytes: (question: DnsQuestion) => number, proto: DnsProtocol): Promise<Buffer | undefined> => {
    const question = readQuestion(query)
    if (!question) return query.length >= 12 ? writeError(query, 'FORMERR') : undefined
    // Clients may ask for any of 65,536 types. As in CoreDNS, those without a name here are one series.
    requests.inc({ type: question.type.startsWith('TYPE') ? 'other' : question.type, proto })
    try {
      const reply = await options.resolve(question, query, proto)
      if (!('raw' in reply)) return writeAnswer(question, reply, maxBytes(question))
      if (reply.raw.length <= maxBytes(question)) return reply.raw
      // It came over TCP, and the client asked over UDP.
      return writeAnswer(question, { code: recordsOf(reply)?.code ?? 'NOERROR', authoritative: false, answers: [], isTruncated: true }, maxBytes(question))
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
