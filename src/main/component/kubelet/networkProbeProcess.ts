/** The process of a probe (L5), in the network namespace that networkProbe.ts starts it in: resolves the names, opens the connections, closes them at once and ends. */
import dns from 'node:dns/promises'
import net from 'node:net'
import tls from 'node:tls'
import type { Connection, ConnectionResult, DnsAnswer, DnsQuestion, NetworkProbe, NetworkProbeResults } from '#api/debug/nodeNetwork'
import { bareMap } from '#base/bareMap'

/** Longer than a lost first packet takes to be sent again. */
const connectMs = 2000
const resolveMs = 1500
const maxRecords = 64
/** The bound for the answers together: their text is then well below what networkProbe.ts reads. */
const maxRecordsTogether = 512
const maxText = 256

/** The process: a probe on standard input, the results on standard output. */
export async function runProbeProcess(): Promise<void> {
  let text = ''
  for await (const chunk of process.stdin) text += chunk
  process.stdout.write(JSON.stringify(await probeNetwork(JSON.parse(text) as NetworkProbe)))
}

export async function probeNetwork({ servers, questions, connections }: NetworkProbe): Promise<NetworkProbeResults> {
  const most = recordsOfEach(questions.length * servers.length)
  const [answers, results] = await Promise.all([
    Promise.all(questions.flatMap((question) => servers.map((server) => resolve(question, server, most)))),
    Promise.all(connections.map(connect)),
  ])
  return { answers, connections: results }
}

/** How many records an answer has at most. Exported for its test. */
export function recordsOfEach(answers: number): number {
  return Math.max(1, Math.min(maxRecords, Math.floor(maxRecordsTogether / answers)))
}

async function resolve(question: DnsQuestion, server: string, most: number): Promise<DnsAnswer> {
  const resolver = new dns.Resolver({ timeout: resolveMs, tries: 1 })
  try {
    resolver.setServers([server])
    const records = (await recordsOf(resolver, question)).slice(0, most)
    return { ...question, server, code: 'NOERROR', records: records.sort() }
  } catch (error) {
    const { code = 'FAILED' } = error as { code?: string }
    return { ...question, server, code: codes[code] ?? code }
  }
}

/** As the protocol has them, where it has. */
const codes: Readonly<Record<string, string>> = bareMap({
  ENOTFOUND: 'NXDOMAIN',
  ENODATA: 'NODATA',
  ESERVFAIL: 'SERVFAIL',
  EREFUSED: 'REFUSED',
  ETIMEOUT: 'TIMEOUT',
})

async function recordsOf(resolver: dns.Resolver, { name, type }: DnsQuestion): Promise<string[]> {
  if (type === 'A') return resolver.resolve4(name)
  if (type === 'AAAA') return resolver.resolve6(name)
  return (await resolver.resolveSrv(name)).map(({ port, name: target }) => `${port} ${target.slice(0, maxText)}`)
}

function connect(wanted: Connection): Promise<ConnectionResult> {
  const { address: host, port, protocol, serverName = '' } = wanted
  return new Promise((done) => {
    // What the certificate is worth is for the reader to say: an expired one is shown.
    const socket =
      protocol === 'tcp'
        ? net.connect({ host, port })
        : tls.connect({ host, port, rejectUnauthorized: false, ...(net.isIP(serverName) || serverName === '' ? {} : { servername: serverName }) })
    const end = (outcome: string) => {
      clearTimeout(timer)
      const result = {
        ...wanted,
        outcome,
        ...(socket instanceof tls.TLSSocket && outcome === 'connected' ? certificateOf(socket.getPeerCertificate(), serverName) : {}),
      }
      socket.destroy()
      done(result)
    }
    const timer = setTimeout(() => end('ETIMEDOUT'), connectMs)
    socket.once(protocol === 'tcp' ? 'connect' : 'secureConnect', () => end('connected'))
    socket.on('error', ({ code, message }: NodeJS.ErrnoException) => end(code ?? message.slice(0, maxText)))
  })
}

type CertificateFacts = Omit<ConnectionResult, keyof Connection | 'outcome'>

/** What is shown of a certificate, which anyone may have made. Exported for its test. */
export function certificateOf(certificate: tls.PeerCertificate, serverName: string): CertificateFacts {
  const { subject, valid_from: from, valid_to: to } = certificate
  if (!to) return {}
  const nameFault = serverName === '' ? undefined : tls.checkServerIdentity(serverName, certificate)?.message
  return {
    certificateSubject: String(subject?.CN ?? '').slice(0, maxText),
    certificateNotBefore: timeOf(from),
    certificateNotAfter: timeOf(to),
    certificateNameFault: nameFault?.slice(0, maxText),
  }
}

function timeOf(text: string): string | undefined {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}
