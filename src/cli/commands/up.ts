/** `skiff up [NAME]` (and `start`): a running cluster, a merged kubeconfig, and commands to try (L4). */
import { isIP } from 'node:net'
import path from 'node:path'
import type { Command } from 'commander'
import { expectedHistory, expectedHistorySize, isHistory, isHistorySize } from '#api/debug/revisions'
import { isDns1123Subdomain, isWildcardDns1123Subdomain } from '#api/machinery/names'
import { type BackupFlags, backupOptions } from '../backupOptions.ts'
import { type IpFamilies, ipFamilies, layoutNames, podNetworks, type UpOptions } from '../clusterManager.ts'
import { type CliCommand, type CommandContext, checkName, defaultClusterName, progressFor, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { isAdvertisable, isEndpoint } from '../kubeadm/endpoint.ts'
import { checkKubeconfig, kubeconfigPath, mergeKubeconfig } from '../kubeconfigFile.ts'
import { nextSteps } from '../nextSteps.ts'
import { maxSimulatedNodes } from '../nodeLike.ts'
import { formatSeconds, type Progress } from '../progress.ts'
import { publishedPorts } from '../publishedPorts.ts'
import { withoutSimulatedNodes } from '../shownStatus.ts'
import { applyConfigFile } from '../upConfig.ts'
import { wholeNumber } from '../wholeNumber.ts'

interface UpFlags extends BackupFlags {
  nodes?: string
  simulatedNodes?: string
  runtime?: string
  port?: string
  podCidr?: string
  etcd?: string
  controlPlanes?: string
  layout?: string
  etcdServers?: string
  etcdCafile?: string
  etcdCertfile?: string
  etcdKeyfile?: string
  etcdPrefix?: string
  serviceCidr?: string
  ipFamilies?: string
  apiserverAdvertiseAddress?: string
  controlPlaneEndpoint?: string
  apiserverCertExtraSans?: string
  kubeApiserverArg?: string[]
  kubeControllerManagerArg?: string[]
  kubeSchedulerArg?: string[]
  v?: string
  logMaxSize?: string
  logMaxFiles?: string
  history?: string
  historySize?: string
  autostart?: boolean
  ingress?: boolean
  proxyMode?: string
  disableKubeProxy?: boolean
  podNetwork?: string
  publish?: string[]
  kubeconfig?: string | boolean
  quiet?: boolean
  output?: string
}

const runtimes = ['auto', 'containerd', 'simulated'] as const

export const up: CliCommand = {
  name: 'up',
  register: (program, context) => {
    withUpFlags(program.command('up [name]').description('create a cluster, or start it, and wait until it serves'))
      .option('--config <file>', 'a YAML file with these flags as keys, or a file of kubeadm; a flag on the command line wins')
      .action(async (name: string | undefined, { config }: { config?: string }, command: Command) => {
        const named = config === undefined ? undefined : await applyConfigFile(command, config, context)
        await run(context, checkName(name ?? named ?? defaultClusterName), command.opts<UpFlags>())
      })
  },
}

export const start: CliCommand = {
  name: 'start',
  register: (program, context) => {
    withUpFlags(program.command('start [name]').description('start a stopped cluster')).action(async (name: string | undefined, flags: UpFlags) =>
      run(context, await resolveCluster(context, name), flags),
    )
  },
}

function withUpFlags(command: Command): Command {
  return command
    .option('--nodes <n>', 'real nodes, each with its own containerd (default: 1)')
    .option('--simulated-nodes <n>', 'simulated nodes, in addition (default: 0)')
    .option('--runtime <name>', 'auto, containerd or simulated (default: auto)')
    .option('--port <port>', 'port of the API on 127.0.0.1; 0 picks one and keeps it (default: 0)')
    .option('--ip-families <names>', 'ipv4, ipv6, or ipv4,ipv6 for pods, nodes and Services with addresses of both (default: ipv4)')
    .option('--pod-cidr <range>', 'range of the addresses of pods, or one of each family with a comma between (default: one that nothing on this host uses)')
    .option('--service-cidr <range>', 'range of the addresses of Services (default: likewise)')
    .option('--apiserver-advertise-address <ip>', 'an address of this host on which other machines reach the API (default: none)')
    .option('--control-plane-endpoint <host[:port]>', 'the address that machines use to join, such as that of a load balancer (default: the former)')
    .option('--apiserver-cert-extra-sans <names>', 'more names and addresses for the serving certificate, separated by commas')
    .option('--control-planes <n>', 'API servers behind one endpoint, which elect who runs controllers and scheduler; over an etcd (default: 1)')
    .option(
      '--layout <name>',
      'processes of the cluster: single, split (controllers and simulated nodes have their own), or auto for split where it pays (default: auto)',
    )
    .option(
      '--etcd <members>',
      'store objects in an etcd of the cluster, with 1, 3 or 5 members, or embedded: in one process with the store of Skiff (default: none, they are in a file)',
    )
    .option('--etcd-servers <urls>', 'store objects in an etcd that is there: https://HOST:PORT,…')
    .option('--etcd-cafile <file>', 'the authority that signed its certificate')
    .option('--etcd-certfile <file>', 'the client certificate that it asks for')
    .option('--etcd-keyfile <file>', 'the key of the client certificate')
    .option('--etcd-prefix <path>', 'where the keys of the objects begin in it (default: /registry)')
    .option('--kube-apiserver-arg <flag=value>', 'a flag of kube-apiserver, such as audit-log-path=/var/log/audit.log; may be repeated', repeated)
    .option('--kube-controller-manager-arg <flag=value>', 'a flag of kube-controller-manager, such as controllers=-ttl; may be repeated', repeated)
    .option('--kube-scheduler-arg <flag=value>', 'a flag of kube-scheduler: config=/etc/scheduler.yaml; may be repeated', repeated)
    .option('--log-max-size <mebibytes>', 'size beyond which a log is moved aside (default: 20)')
    .option('--log-max-files <n>', 'number of files moved aside that are kept of each log (default: 3)')
    .option('--history <duration>', 'how long changes can be looked up by skiff at, history and diff, such as 24h (default: 5 to 10 minutes)')
    .option('--history-size <bytes>', 'the most that this history takes; beyond, its oldest part is given up (default: 400Mi with --history)')
    .option('--backup-schedule <cron>', "when to save a snapshot of the cluster, in UTC, such as '0 */6 * * *'; off ends it (default: never)")
    .option('--backup-dir <place>', 'where they go: a directory, or s3://BUCKET/PREFIX?endpoint=https://HOST&region=NAME')
    .option('--backup-keep <n>', 'number of backups that are kept, the newest (default: 10)')
    .option('--backup-credentials <file>', "the keys for the bucket, in the form of AWS's credentials file")
    .option('--autostart', 'start the cluster when the host boots, by a unit of systemd; delete removes it')
    .option('--ingress', 'serve Ingresses on the real nodes; skiff addon disable ingress turns it off')
    .option(
      '--proxy-mode <name>',
      'how real nodes serve Services: nftables, iptables, userspace, ipvs, none, or auto for the first that the host can run (default: auto)',
    )
    .option('--disable-kube-proxy', 'start no service proxy: another program serves Services; the same as --proxy-mode none')
    .option('--pod-network <name>', 'how packets get from pod to pod: host-gw, vxlan, or none for another CNI plugin (default: host-gw)')
    .option('--publish <port:nodeport>', 'a port of localhost that leads to a port of the nodes, such as 8080:80 or 5353:53/udp; may be repeated', repeated)
    .option('--kubeconfig <file>', 'the kubeconfig to merge into')
    .option('--no-kubeconfig', 'leave every kubeconfig alone')
    .option('-v, --v <n>', 'verbosity of the logs (default: 2)')
    .option('-q, --quiet', 'print nothing but errors')
    .option('-o, --output <format>', 'json: print the status as JSON')
}

function repeated(value: string, before: string[] = []): string[] {
  return [...before, value]
}

async function run(context: CommandContext, name: string, flags: UpFlags): Promise<void> {
  const started = context.clock.monotonicMs()
  const progress = progressFor(context, flags.quiet ?? false)
  const options = parseOptions(flags)
  const file = await kubeconfigOf(context, flags)
  if (file !== undefined) await checkKubeconfig(file, context.clock)
  const { created, status } = await bringUp(context, name, options, file, progress)
  if (flags.output === 'json') {
    context.stdout.write(`${JSON.stringify(withoutSimulatedNodes(status), null, 2)}\n`)
    return
  }
  progress.note(
    `\nCluster "${name}" ${created ? 'is up' : 'runs'} (${formatSeconds(context.clock.monotonicMs() - started)}): ${status.server}, context skiff-${name}`,
  )
  progress.note(await nextSteps(context, status, file === undefined))
}

/** Starts the cluster, and merges its entry into the kubeconfig `file`; undefined: into none. */
export async function bringUp(context: CommandContext, name: string, options: UpOptions, file: string | undefined, progress: Progress) {
  context.ifInterrupted(`cluster "${name}" may have been started in part: skiff up ${name} continues, skiff delete ${name} removes what was made`)
  const merge = async () => {
    if (file === undefined) return
    const { previous } = await mergeKubeconfig(file, await context.clusters.kubeconfig(name), context.clock)
    await context.clusters.rememberKubeconfig(name, file, previous)
  }
  try {
    const result = await context.clusters.up(name, options, progress)
    await merge()
    return result
  } catch (error) {
    if (error instanceof CommandError && error.serves) await merge()
    throw error
  }
}

/** The kubeconfig to merge into; undefined with --no-kubeconfig. */
async function kubeconfigOf({ env, home }: CommandContext, { kubeconfig }: UpFlags): Promise<string | undefined> {
  if (kubeconfig === false) return undefined
  return kubeconfigPath({ flag: typeof kubeconfig === 'string' ? kubeconfig : undefined, variable: env.KUBECONFIG, home })
}

/** What the flags ask for; without flags, a cluster with the defaults. */
export function parseOptions(flags: UpFlags): UpOptions {
  if (flags.output !== undefined && flags.output !== 'json') throw new CommandError('usage', `-o ${flags.output}: expected json`)
  return {
    runtime: oneOf('--runtime', flags.runtime, runtimes),
    nodes: number('--nodes', flags.nodes, 0, 20),
    simulatedNodes: number('--simulated-nodes', flags.simulatedNodes, 0, maxSimulatedNodes),
    port: number('--port', flags.port, 0, 65_535),
    podCidr: flags.podCidr,
    serviceCidr: flags.serviceCidr,
    ipFamilies: familiesOf(flags.ipFamilies),
    advertiseAddress: checked('--apiserver-advertise-address', flags.apiserverAdvertiseAddress, isAdvertisable, 'an IP address other machines can use'),
    controlPlaneEndpoint: checked('--control-plane-endpoint', flags.controlPlaneEndpoint, isEndpoint, 'HOST or HOST:PORT'),
    certNames: flags.apiserverCertExtraSans?.split(',').map(certName),
    verbosity: number('-v', flags.v, 0, 10),
    logMaxSize: number('--log-max-size', flags.logMaxSize, 1, 10_000),
    logMaxFiles: number('--log-max-files', flags.logMaxFiles, 1, 1000),
    history: checked('--history', flags.history, isHistory, `0, or ${expectedHistory}`),
    historySize: checked('--history-size', flags.historySize, isHistorySize, expectedHistorySize),
    backup: backupOptions(flags),
    autostart: flags.autostart,
    ingress: flags.ingress,
    proxyMode: proxyMode(flags),
    podNetwork: oneOf('--pod-network', flags.podNetwork, podNetworks),
    publish: publishedPorts(flags.publish),
    etcd: etcdMembers(flags),
    controlPlanes: number('--control-planes', flags.controlPlanes, 1, 5),
    layout: oneOf('--layout', flags.layout, ['auto', ...layoutNames]),
    apiServerArgs: apiServerArgs(flags),
    controllerManagerArgs: flags.kubeControllerManagerArg?.map(asFlag),
    schedulerArgs: flags.kubeSchedulerArg?.map(asFlag),
  }
}

function proxyMode({ proxyMode, disableKubeProxy }: UpFlags): string | undefined {
  if (!disableKubeProxy) return proxyMode
  if (proxyMode !== undefined && proxyMode !== 'none') throw new CommandError('usage', `--disable-kube-proxy and --proxy-mode ${proxyMode} exclude each other`)
  return 'none'
}

function oneOf<T extends string>(flag: string, text: string | undefined, names: readonly T[]): T | undefined {
  const found = names.find((name) => name === text)
  if (text !== undefined && !found) throw new CommandError('usage', `${flag} ${text}: expected ${names.join(', ')}`)
  return found
}

function familiesOf(text: string | undefined): IpFamilies | undefined {
  const names = text?.split(',').map((name) => name.trim().toLowerCase())
  const found = ipFamilies.find((families) => families === names?.join())
  if (text !== undefined && !found) throw new CommandError('usage', `--ip-families ${text}: expected ipv4, ipv6 or ipv4,ipv6`)
  return found
}

const ofEtcd = ['etcdServers', 'etcdCafile', 'etcdCertfile', 'etcdKeyfile', 'etcdPrefix'] as const
const files: ReadonlySet<string> = new Set(['etcdCafile', 'etcdCertfile', 'etcdKeyfile'])
const flagOf = (option: string) => `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** kube-apiserver's flags, those of an etcd that is there among them. */
function apiServerArgs(flags: UpFlags): string[] | undefined {
  const given = ofEtcd.filter((option) => flags[option] !== undefined)
  if (given.length > 0 && flags.etcdServers === undefined) throw new CommandError('usage', `${flagOf(given[0] as string)} needs --etcd-servers`)
  // The server runs in another folder than the user.
  const own = given.map((option) => `${flagOf(option)}=${files.has(option) ? path.resolve(flags[option] as string) : flags[option]}`)
  return own.length > 0 ? [...own, ...(flags.kubeApiserverArg ?? []).map(asFlag)] : flags.kubeApiserverArg?.map(asFlag)
}

function etcdMembers({ etcd, etcdServers, kubeApiserverArg = [] }: UpFlags): UpOptions['etcd'] {
  if (etcd === undefined) return undefined
  if (etcdServers !== undefined || kubeApiserverArg.some((flag) => /^(--)?etcd-servers\b/.test(flag)))
    throw new CommandError('usage', '--etcd makes an etcd, --etcd-servers names one that is there: give one of them')
  if (etcd === 'embedded') return etcd
  if (!['1', '3', '5'].includes(etcd)) throw new CommandError('usage', `--etcd ${etcd}: expected 1, 3, 5 or embedded`)
  return Number(etcd)
}

function asFlag(text: string): string {
  return `--${text.replace(/^--/, '')}`
}

/** A host, a wildcard or an IP address, as the certificate names it. */
function certName(text: string): string {
  const name = text.trim()
  if (isIP(name) !== 0 || [isDns1123Subdomain, isWildcardDns1123Subdomain].some((isForm) => isForm(name).length === 0)) return name
  throw new CommandError('usage', `--apiserver-cert-extra-sans: "${name}" is neither a host name, such as api.example.com or *.example.com, nor an IP address`)
}

function checked(flag: string, text: string | undefined, isRight: (text: string) => boolean, expected: string): string | undefined {
  if (text !== undefined && !isRight(text)) throw new CommandError('usage', `${flag} ${text}: expected ${expected}`)
  return text
}

const number = (flag: string, text: string | undefined, min: number, max: number) => (text === undefined ? undefined : wholeNumber(flag, text, min, max))
