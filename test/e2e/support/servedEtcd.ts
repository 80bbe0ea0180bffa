/** `skiff etcd serve` as a process with TLS, for end-to-end tests: clients need a certificate of its authority. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { OpenSsl } from '../../support/openssl.ts'
import { skiffBin } from './localCluster.ts'

export interface ServedEtcd {
  readonly child: ChildProcess
  readonly port: number
}

export interface EtcdFiles {
  /** Flags of the server. */
  readonly flags: readonly string[]
  /** PEM. */
  readonly client: { readonly ca: string; readonly cert: string; readonly key: string }
}

/** Writes `ca.crt`, `client.crt`, `client.key`, `etcd.crt` and `etcd.key` into the folder. */
export function etcdCertificates(ssl: OpenSsl): EtcdFiles {
  const authority = ssl.authority('etcd-ca')
  const serving = ssl.sign(authority, { subject: '/CN=etcd', usage: 'serverAuth', names: 'IP:127.0.0.1' })
  const user = ssl.sign(authority, { subject: '/CN=client' })
  const ca = ssl.file('ca.crt', authority.cert)
  ssl.file('client.crt', user.cert)
  ssl.file('client.key', user.key)
  const files = [`--cert-file=${ssl.file('etcd.crt', serving.cert)}`, `--key-file=${ssl.file('etcd.key', serving.key)}`, `--trusted-ca-file=${ca}`]
  return { flags: [`--data-dir=${ssl.folder}/data`, '--client-cert-auth', ...files], client: { ca: authority.cert, ...user } }
}

/** Resolves once it serves. @param port 0: a free one @throws Error with what it said when it ends before */
export async function serveEtcd(flags: readonly string[], port = 0): Promise<ServedEtcd> {
  const child = spawn(process.execPath, [skiffBin, 'etcd', 'serve', `--listen-client-urls=https://127.0.0.1:${port}`, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  for await (const piece of child.stderr!.iterator({ destroyOnReturn: false })) {
    log += piece
    const found = /Serving client traffic.*127\.0\.0\.1:(\d+)/.exec(log)?.[1]
    if (found !== undefined) {
      child.stderr?.resume()
      return { child, port: Number(found) }
    }
  }
  throw new Error(`the store did not start: ${log}`)
}

export async function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}
