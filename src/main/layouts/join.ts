/**
 * `skiff join HOST:PORT` (L5): makes this machine a node of a cluster. It checks which cluster answers, writes what the kubelet needs, and runs the kubelet in the
 * foreground, which asks for its certificate with the bootstrap token. Upstream: kubeadm join, for nodes (v1.36).
 */
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { printable } from '#base/printable'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { configMaps } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport } from '#client/httpTransport'
import { exists, makeDirectory, writeFileAtomic } from '#host/files'
import { discoverCluster, type Place } from '../join/discovery.ts'
import { type AcceptedAuthorities, acceptedAuthorities, type BootstrapToken, parseToken, type TrustedCluster } from '../join/verifyClusterInfo.ts'
import { createRealClock } from '../realClock.ts'
import { kubeletConfigName } from './joinAccess.ts'

const help = `Makes this machine a node of a cluster, and runs its kubelet in the foreground.

Usage:
  skiff join HOST:PORT --token TOKEN --discovery-token-ca-cert-hash sha256:HASH [flags] [-- kubelet's flags]

      --token                                    the bootstrap token: skiff token create makes one
      --token-file                               a file with the token, or - for standard input: until it starts, every user of the machine can
                                                 read the arguments of a command
      --discovery-token-ca-cert-hash             sha256: and the hash of the public key of the cluster's authority; may be repeated
      --discovery-token-unsafe-skip-ca-verification
                                                 trust any authority that the token has signed: whoever knows the token can pretend to be the cluster
      --node-name                                the name of the node (default: this machine's)
      --config-dir                               where kubeconfigs and the authority are written (default: /etc/kubernetes)
      --root-dir                                 the kubelet's directory (default: /var/lib/kubelet)
  -v, --v                                        verbosity of the kubelet's log (default: 2)

The machine needs containerd, and a network plugin for its pods. What follows -- are flags of the kubelet: skiff kubelet --help lists them.
`

interface Join {
  readonly place: Place
  readonly token: BootstrapToken
  readonly authorities: AcceptedAuthorities
  readonly nodeName: string
  readonly files: JoinFiles
  /** The kubelet's, as the user gives them. */
  readonly kubeletFlags: readonly string[]
}

interface JoinFiles {
  readonly ca: string
  readonly bootstrap: string
  readonly kubeconfig: string
  readonly config: string
  readonly rootDir: string
}

/** Resolves with the exit code when the kubelet has ended, or when the machine cannot join. */
export async function runJoin(args: readonly string[], signal: AbortSignal): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(help)
    return exitCodes.ok
  }
  const clock = createRealClock()
  let join: Join
  try {
    join = await readJoin(args)
    await prepare(join, clock, signal)
  } catch (error) {
    if (signal.aborted) return exitCodes.interrupted
    if (!(error instanceof CommandError)) throw error
    const lines = [`error: ${error.message}`, ...(error.hint ? [`hint: ${error.hint}`] : [])]
    process.stderr.write(lines.map((line) => `${printable(line)}\n`).join(''))
    return exitCodes[error.exit]
  }
  void announce(join, clock, signal)
  const { runKubeletProcess } = await import('./kubelet.ts')
  return runKubeletProcess(kubeletArgs(join), signal)
}

/** @throws CommandError usage */
async function readJoin(args: readonly string[]): Promise<Join> {
  const end = args.indexOf('--')
  const { values, positionals } = parsed(end < 0 ? args : args.slice(0, end))
  const place = parsePlace(positionals)
  // It replaces the arguments, which every user of the machine can read while the kubelet runs: the token is good for the certificate of any node.
  process.title = `skiff join ${positionals[0]}`
  const authorities = acceptedAuthorities(values['discovery-token-ca-cert-hash'] ?? [], values['discovery-token-unsafe-skip-ca-verification'] ?? false)
  const token = parseToken(await givenToken(values.token, values['token-file']))
  const { 'config-dir': dir, 'root-dir': rootDir, v } = values
  const files = {
    ca: path.resolve(dir, 'pki/ca.crt'),
    bootstrap: path.resolve(dir, 'bootstrap-kubelet.conf'),
    kubeconfig: path.resolve(dir, 'kubelet.conf'),
    config: path.resolve(rootDir, 'config.yaml'),
    rootDir: path.resolve(rootDir),
  }
  const nodeName = (values['node-name'] ?? os.hostname()).trim().toLowerCase()
  return { place, token, authorities, nodeName, files, kubeletFlags: [`--v=${v}`, ...(end < 0 ? [] : args.slice(end + 1))] }
}

/** @throws CommandError usage */
async function givenToken(token: string | undefined, file: string | undefined): Promise<string> {
  if (token !== undefined && file !== undefined) throw new CommandError('usage', '--token and --token-file: one of them is enough')
  if (token !== undefined) return token
  if (file === undefined) throw new CommandError('usage', '--token or --token-file is missing', { hint: 'skiff token create makes a token' })
  try {
    return (await (file === '-' ? text(process.stdin) : fs.readFile(file, 'utf8'))).trim()
  } catch (error) {
    throw new CommandError('usage', `--token-file ${file}: ${messageOf(error)}`, { cause: error })
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        token: { type: 'string' },
        'token-file': { type: 'string' },
        'discovery-token-ca-cert-hash': { type: 'string', multiple: true },
        'discovery-token-unsafe-skip-ca-verification': { type: 'boolean' },
        'node-name': { type: 'string' },
        'config-dir': { type: 'string', default: '/etc/kubernetes' },
        'root-dir': { type: 'string', default: '/var/lib/kubelet' },
        v: { type: 'string', short: 'v', default: '2' },
      },
    })
  } catch (error) {
    throw new CommandError('usage', messageOf(error), { hint: 'skiff join --help lists the flags', cause: error })
  }
}

function parsePlace(positionals: readonly string[]): Place {
  const [, host, digits] = /^\[?([^[\]]+)\]?:(\d{1,5})$/.exec(positionals[0] ?? '') ?? []
  const port = Number(digits)
  if (positionals.length !== 1 || host === undefined || port < 1 || port > 65_535) {
    throw new CommandError('usage', `expected the address of the cluster's API, HOST:PORT, and got: ${positionals.join(' ') || 'nothing'}`)
  }
  return { host, port }
}

/** Everything before the kubelet. @throws CommandError */
async function prepare(join: Join, clock: Clock, signal: AbortSignal): Promise<void> {
  const { place, token, authorities, files } = join
  if (await exists(files.kubeconfig)) {
    throw new CommandError('alreadyExists', `${files.kubeconfig} is there: this machine has joined a cluster`, {
      hint: `run its kubelet: skiff kubelet ${kubeletArgs(join).join(' ')}`,
    })
  }
  const cluster = await discoverCluster({ place, token, authorities, clock, signal })
  done(`The cluster at ${place.host}:${place.port} is signed with token ${token.id}${authorities === 'any' ? '' : ', and its authority is the expected one'}`)
  const configuration = await kubeletConfiguration(cluster, token, clock, signal)
  done(
    configuration === undefined
      ? 'The cluster has no configuration for kubelets: the defaults are used'
      : 'The configuration of the kubelet is that of the cluster',
  )
  await write(join, cluster, configuration)
  done(`Written: ${[files.ca, files.bootstrap, files.config].join(', ')}`)
}

function done(line: string): void {
  process.stderr.write(` ✓ ${printable(line)}\n`)
}

/** YAML; undefined when the cluster has none, or does not show it. @throws CommandError when the token does not authenticate */
async function kubeletConfiguration(
  { server, ca }: TrustedCluster,
  { id, secret }: BootstrapToken,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | undefined> {
  const transport = createHttpTransport({ server, clock, tls: { ca }, bearerToken: `${id}.${secret}`, requestTimeoutMs: 10_000 })
  try {
    const found = await createClient(transport).of(configMaps).get({ namespace: 'kube-system', name: kubeletConfigName }, { signal })
    return found.data?.kubelet
  } catch (error) {
    if (isStatus(error, 'NotFound') || isStatus(error, 'Forbidden')) return undefined
    if (isStatus(error, 'Unauthorized')) {
      throw new CommandError('notFound', `the cluster does not accept token "${id}" any more, or not for joining`, {
        hint: 'make a new one: skiff token create',
        cause: error,
      })
    }
    throw new CommandError('timeout', `${server}, which the cluster names as its address, does not answer: ${messageOf(error)}`, {
      hint: 'this machine must reach that address',
      cause: error,
    })
  } finally {
    await transport.close()
  }
}

async function write({ token, files }: Join, { server, ca }: TrustedCluster, configuration: string | undefined): Promise<void> {
  for (const file of [files.ca, files.bootstrap, files.config]) await makeDirectory(path.dirname(file), 0o755)
  await writeFileAtomic(files.ca, ca, 0o644)
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'default',
    clusters: [{ name: 'default', cluster: { server, 'certificate-authority': files.ca } }],
    users: [{ name: 'default', user: { token: `${token.id}.${token.secret}` } }],
    contexts: [{ name: 'default', context: { cluster: 'default', user: 'default' } }],
  }
  await writeFileAtomic(files.bootstrap, `${JSON.stringify(kubeconfig, null, 2)}\n`, 0o600)
  await writeFileAtomic(files.config, configuration ?? 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n', 0o644)
}

function kubeletArgs({ files, nodeName, kubeletFlags }: Join): string[] {
  return [
    `--config=${files.config}`,
    `--bootstrap-kubeconfig=${files.bootstrap}`,
    `--kubeconfig=${files.kubeconfig}`,
    `--client-ca-file=${files.ca}`,
    `--cert-dir=${path.join(files.rootDir, 'pki')}`,
    `--root-dir=${files.rootDir}`,
    `--hostname-override=${nodeName}`,
    ...kubeletFlags,
  ]
}

/** The kubelet writes its kubeconfig when it has its certificate; the token is of no use from then on. */
async function announce({ files, nodeName }: Join, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await exists(files.kubeconfig))) await clock.sleep(500, signal).catch(() => {})
  if (signal.aborted) return
  await fs.rm(files.bootstrap, { force: true })
  done(`This machine is node ${nodeName}: its certificate is signed, and the token is removed from it`)
}
