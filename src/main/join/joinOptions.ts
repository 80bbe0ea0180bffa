/** The command line of `skiff join`, and the JoinConfiguration of kubeadm that --config names (L5): flags win over the file. */
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { messageOf } from '#base/messageOf'
import type { BootstrapToken } from '#cli/bootstrapToken'
import { CommandError } from '#cli/exitCodes'
import { readConfigText, withWarnings } from '#cli/kubeadm/configFile'
import { isAdvertisable, parseEndpoint } from '#cli/kubeadm/endpoint'
import { type JoinSettings, readJoinConfiguration } from '#cli/kubeadm/joinConfiguration'
import { givenSecret } from '#cli/secretFile'
import { parseCertificateKey } from './certificateKey.ts'
import { type ControlPlaneFiles, controlPlaneFiles } from './controlPlanePaths.ts'
import type { Place } from './discovery.ts'
import { type AcceptedAuthorities, acceptedAuthorities, parseToken } from './verifyClusterInfo.ts'

interface Joining {
  readonly place: Place
  readonly token: BootstrapToken
  readonly authorities: AcceptedAuthorities
  readonly nodeName: string
  readonly runBy: RunBy
}

/** How a machine that has joined is run: by this process, or by a unit of systemd; `print`: the unit is printed, and nothing is done. */
export type RunBy = 'foreground' | 'unit' | 'print'

export interface NodeJoin extends Joining {
  readonly as: 'node'
  readonly files: JoinFiles
  /** The kubelet's, as the user gives them. */
  readonly kubeletFlags: readonly string[]
}

export interface JoinFiles {
  readonly ca: string
  readonly bootstrap: string
  readonly kubeconfig: string
  readonly config: string
  readonly rootDir: string
}

export interface ControlPlaneJoin extends Joining {
  readonly as: 'controlPlane'
  readonly certificateKey: Buffer
  /** Undefined: that from which this machine reaches the cluster. */
  readonly address: string | undefined
  readonly port: number
  readonly configDir: string
  readonly files: ControlPlaneFiles
  readonly verbosity: string
}

/** A machine that has joined runs its control plane again. */
export interface ControlPlaneRun {
  readonly as: 'joined'
  readonly configDir: string
  readonly files: ControlPlaneFiles
  readonly runBy: RunBy
  readonly verbosity: string
}

export type JoinOptions = NodeJoin | ControlPlaneJoin | ControlPlaneRun

const flags = {
  token: { type: 'string' },
  'token-file': { type: 'string' },
  'discovery-token-ca-cert-hash': { type: 'string', multiple: true },
  'discovery-token-unsafe-skip-ca-verification': { type: 'boolean' },
  'control-plane': { type: 'boolean' },
  'certificate-key': { type: 'string' },
  'certificate-key-file': { type: 'string' },
  'apiserver-advertise-address': { type: 'string' },
  'apiserver-bind-port': { type: 'string' },
  install: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  config: { type: 'string' },
  'node-name': { type: 'string' },
  'config-dir': { type: 'string', default: '/etc/kubernetes' },
  'root-dir': { type: 'string', default: '/var/lib/kubelet' },
  v: { type: 'string', short: 'v', default: '2' },
} as const

/** @throws CommandError */
export async function readJoinOptions(args: readonly string[]): Promise<JoinOptions> {
  const end = args.indexOf('--')
  const { values, positionals } = parsed(end < 0 ? args : args.slice(0, end))
  // It replaces the arguments, which every user of the machine can read while the kubelet runs: the token is good for the certificate of any node.
  process.title = `skiff join ${positionals[0] ?? ''}`.trim()
  const { config } = values
  const file = config === undefined ? undefined : await readFile(config)
  const controlPlane = (values['control-plane'] ?? false) || file?.controlPlane !== undefined
  const configDir = values['config-dir']
  const runBy = runByOf(values)
  const files = controlPlaneFiles(configDir)
  if (controlPlane && end >= 0) throw new CommandError('usage', "flags of the kubelet after '--': a control plane runs no kubelet")
  if (controlPlane && positionals.length === 0 && config === undefined) return { as: 'joined', configDir, files, runBy, verbosity: values.v }
  const place = parsePlace(positionals.length > 0 ? positionals : [file?.endpoint ?? ''])
  const joining: Joining = {
    place,
    runBy,
    authorities: acceptedAuthorities(
      values['discovery-token-ca-cert-hash'] ?? file?.hashes ?? [],
      values['discovery-token-unsafe-skip-ca-verification'] ?? file?.skipsVerification ?? false,
    ),
    token: parseToken(await givenToken(values, file)),
    nodeName: (values['node-name'] ?? file?.nodeName ?? os.hostname()).trim().toLowerCase(),
  }
  if (!controlPlane) return nodeJoin(joining, values, file, end < 0 ? [] : args.slice(end + 1))
  const key = (await givenSecret('certificate-key', values['certificate-key'], values['certificate-key-file'])) ?? file?.controlPlane?.certificateKey
  if (key === undefined) {
    throw new CommandError('usage', '--certificate-key or --certificate-key-file is missing', { hint: 'on a control plane: skiff certs upload prints it' })
  }
  return {
    as: 'controlPlane',
    ...joining,
    certificateKey: parseCertificateKey(key),
    address: addressOf(values['apiserver-advertise-address']) ?? file?.controlPlane?.advertiseAddress,
    // The kubernetes Service has one port for all servers.
    port: portOf(values['apiserver-bind-port']) ?? file?.controlPlane?.bindPort ?? place.port,
    configDir,
    files,
    verbosity: values.v,
  }
}

function runByOf({ install, 'dry-run': dryRun }: ReturnType<typeof parsed>['values']): RunBy {
  if (dryRun && !install) throw new CommandError('usage', '--dry-run needs --install: it prints the unit of systemd')
  return dryRun ? 'print' : install ? 'unit' : 'foreground'
}

function nodeJoin(joining: Joining, values: ReturnType<typeof parsed>['values'], file: JoinSettings | undefined, kubeletFlags: readonly string[]): NodeJoin {
  for (const name of ['certificate-key', 'certificate-key-file', 'apiserver-advertise-address', 'apiserver-bind-port'] as const)
    if (values[name] !== undefined) throw new CommandError('usage', `--${name} needs --control-plane`)
  const { 'config-dir': dir, 'root-dir': rootDir, v } = values
  const files = {
    ca: path.resolve(file?.caFile ?? path.join(dir, 'pki/ca.crt')),
    bootstrap: path.resolve(dir, 'bootstrap-kubelet.conf'),
    kubeconfig: path.resolve(dir, 'kubelet.conf'),
    config: path.resolve(rootDir, 'config.yaml'),
    rootDir: path.resolve(rootDir),
  }
  return { as: 'node', ...joining, files, kubeletFlags: [`--v=${v}`, ...(file?.kubeletFlags ?? []), ...kubeletFlags] }
}

async function readFile(name: string): Promise<JoinSettings> {
  const content = await readConfigText(name)
  return withWarnings(name, process, (report) => readJoinConfiguration(content, report))
}

function addressOf(text: string | undefined): string | undefined {
  if (text === undefined || isAdvertisable(text)) return text
  throw new CommandError('usage', `--apiserver-advertise-address ${text}: expected an IP address that other machines can use`)
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port >= 1 && port <= 65_535) return port
  throw new CommandError('usage', `--apiserver-bind-port ${text}: expected a port`)
}

/** @throws CommandError usage */
async function givenToken(values: ReturnType<typeof parsed>['values'], file: JoinSettings | undefined): Promise<string> {
  if (values['token-file'] === '-' && values['certificate-key-file'] === '-')
    throw new CommandError('usage', '--token-file - and --certificate-key-file -: standard input can be one of them')
  const token = (await givenSecret('token', values.token, values['token-file'])) ?? file?.token
  if (token !== undefined) return token
  throw new CommandError('usage', '--token or --token-file is missing', { hint: 'skiff token create makes a token' })
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options: flags })
  } catch (error) {
    throw new CommandError('usage', messageOf(error), { hint: 'skiff join --help lists the flags', cause: error })
  }
}

function parsePlace(positionals: readonly string[]): Place {
  const { host, port } = parseEndpoint(positionals[0] ?? '') ?? {}
  if (positionals.length !== 1 || host === undefined || port === undefined) {
    throw new CommandError('usage', `expected the address of the cluster's API, HOST:PORT, and got: ${positionals.join(' ') || 'nothing'}`)
  }
  return { host, port }
}
