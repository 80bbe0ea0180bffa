/**
 * Probes from the network namespace of a pod (L5): a short-lived process of this program enters the namespace, since Node cannot do so by itself, resolves the
 * names, opens the connections and ends. It has the rights, cgroup and files of the agent, so that nothing of a pod's is read or run.
 */
import dns from 'node:dns/promises'
import net from 'node:net'
import tls from 'node:tls'
import type { Connection, ConnectionResult, DnsAnswer, DnsQuestion, NetworkProbe, NetworkProbeResults } from '#api/debug/nodeNetwork'
import { check, type Exec } from '#host/exec'

/** The word that makes this program the process of a probe. */
export const probeRole = 'network-probe'

/** Longer than a lost first packet takes to be sent again. */
const connectMs = 2000
const resolveMs = 1500
/** The API server waits five seconds for a view. */
const wholeMs = 4000
const maxOutputBytes = 256 * 1024
const maxAtOnce = 4
const maxRecords = 64
const maxText = 256

/** Words that run this program. */
export function selfWords(): string[] {
  return [process.execPath, ...process.argv.slice(1, 2)]
}

/** @param self words that run this program */
export function networkProbes(exec: Exec, self: readonly string[]): (probe: NetworkProbe) => Promise<NetworkProbeResults> {
  let running = 0
  return async ({ namespacePath, ...probe }) => {
    if (running >= maxAtOnce) throw new Error(`the node makes ${maxAtOnce} probes already: try again later`)
    running++
    try {
      const enter = namespacePath === undefined ? [] : ['nsenter', `--net=${namespacePath}`, '--']
      const [command = '', ...args] = [...enter, ...self, probeRole]
      return JSON.parse(await check(exec, command, args, { input: JSON.stringify(probe), timeoutMs: wholeMs, maxOutputBytes })) as NetworkProbeResults
    } finally {
      running--
    }
  }
}

/** The process: a probe on standard input, the results on standard output. */
export async function runProbeProcess(): Promise<void> {
  let text = ''
  for await (const chunk of process.stdin) text += chunk
  process.stdout.write(JSON.stringify(await probeNetwork(JSON.parse(text) as NetworkProbe)))
}

export async function probeNetwork({ servers, questions, connections }: NetworkProbe): Promise<NetworkProbeResults> {
  const [answers, results] = await Promise.all([
    Promise.all(questions.flatMap((question) => servers.map((server) => resolve(question, server)))),
    Promise.all(connections.map(connect)),
  ])
  return { answers, connections: results }
}

async function resolve(question: DnsQuestion, server: string): Promise<DnsAnswer> {
  const resolver = new dns.Resolver({ timeout: resolveMs, tries: 1 })
  try {
    resolver.setServers([server])
    const records = (await recordsOf(resolver, question)).slice(0, maxRecords)
    return { ...question, server, code: 'NOERROR', records: records.sort() }
  } catch (error) {
    const { code = 'FAILED' } = error as { code?: string }
    return { ...question, server, code: codes[code] ?? code }
  }
}

/** As the protocol has them, where it has. */
const codes: Readonly<Record<string, string>> = { ENOTFOUND: 'NXDOMAIN', ENODATA: 'NODATA', ESERVFAIL: 'SERVFAIL', EREFUSED: 'REFUSED', ETIMEOUT: 'TIMEOUT' }

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
      const result = { ...wanted, outcome, ...(socket instanceof tls.TLSSocket && outcome === 'connected' ? certificateOf(socket) : {}) }
      socket.destroy()
      done(result)
    }
    const timer = setTimeout(() => end('ETIMEDOUT'), connectMs)
    socket.once(protocol === 'tcp' ? 'connect' : 'secureConnect', () => end('connected'))
    socket.on('error', ({ code, message }: NodeJS.ErrnoException) => end(code ?? message.slice(0, maxText)))
  })
}

function certificateOf(socket: tls.TLSSocket): Pick<ConnectionResult, 'certificateSubject' | 'certificateNotBefore' | 'certificateNotAfter'> {
  const { subject, valid_from: from, valid_to: to } = socket.getPeerCertificate()
  if (!to) return {}
  const time = (text: string) => new Date(text).toISOString()
  return { certificateSubject: String(subject?.CN ?? '').slice(0, maxText), certificateNotBefore: time(from), certificateNotAfter: time(to) }
}
