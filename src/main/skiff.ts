/**
 * The program's entry (L5): long-running roles start at once with their own small parser; everything else is the command line.
 * Each path loads only what it needs, because start-up time is a promise.
 */
import { setMaxListeners } from 'node:events'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { printable, printableError } from '#base/printable'
import { optimizeEarly } from './hotCode.ts'
import { describeError } from './textLog.ts'

const [role, ...rest] = process.argv.slice(2)

// nft, ip and their like are in sbin, which is not on every root's PATH.
process.env.PATH = [process.env.PATH, '/usr/local/sbin', '/usr/sbin', '/sbin'].filter(Boolean).join(':')

// Whatever the mask was: what is made without a mode of its own, others may not write.
process.umask(process.umask(0o022) | 0o022)

/** Each resolves with the exit code. */
const components = {
  apiserver: async (args: string[], signal: AbortSignal) => (await import('./layouts/apiserver.ts')).runApiServer(args, signal),
  'controller-manager': async (args: string[], signal: AbortSignal) =>
    (await import('./layouts/controllerManager.ts')).runControllerManagerProcess(args, signal),
  scheduler: async (args: string[], signal: AbortSignal) => (await import('./layouts/scheduler.ts')).runSchedulerProcess(args, signal),
  kubelet: async (args: string[], signal: AbortSignal) => (await import('./layouts/kubelet.ts')).runKubeletProcess(args, signal),
  'kube-proxy': async (args: string[], signal: AbortSignal) => (await import('./layouts/kubeProxy.ts')).runKubeProxyProcess(args, signal),
  join: async (args: string[], signal: AbortSignal) => (await import('./layouts/join.ts')).runJoin(args, signal),
  leave: async (args: string[], signal: AbortSignal) => (await import('./layouts/leave.ts')).runLeave(args, signal),
  'csi-hostpath': async (args: string[], signal: AbortSignal) => (await import('./layouts/csiHostPath/csiHostPath.ts')).runCsiHostPath(args, signal),
  'csi-controller': async (args: string[], signal: AbortSignal) => (await import('./layouts/csiController.ts')).runCsiController(args, signal),
  'server run': async (args: string[], signal: AbortSignal) => {
    const [{ runCluster }, { localClusterDeps }] = await Promise.all([import('./localCluster/runCluster.ts'), import('./localClusterDeps.ts')])
    return runCluster(localClusterDeps(process.argv), args, signal)
  },
  'nodegroup serve': async (args: string[], signal: AbortSignal) => {
    const [{ runNodeGroupServer }, { localClusterDeps }] = await Promise.all([import('./layouts/nodeGroupServer.ts'), import('./localClusterDeps.ts')])
    return runNodeGroupServer(localClusterDeps(process.argv), args, signal)
  },
  'cluster-controllers': async (args: string[], signal: AbortSignal) => (await import('./layouts/processes/partProcess.ts')).runControllersPart(args, signal),
  'cluster-simulated-nodes': async (args: string[], signal: AbortSignal) =>
    (await import('./layouts/processes/partProcess.ts')).runSimulatedNodesPart(args, signal),
  'etcd serve': async (args: string[], signal: AbortSignal) => (await import('./layouts/etcdServer.ts')).runEtcdServer(args, signal),
}

/** Roles that serve many clients; a node's agents keep less code in memory. */
const servers = new Set(['apiserver', 'controller-manager', 'scheduler', 'etcd', 'cluster-controllers', 'cluster-simulated-nodes'])
const agents = new Set(['kubelet', 'kube-proxy', 'join', 'node-agent', 'node-ingress', 'csi-hostpath'])
const component = role === 'part' ? rest[0] : role

/** Its other words are commands. */
const isClusterServer = role === 'server' && rest[0] === '--cluster-dir'

try {
  if (isClusterServer || (component !== undefined && servers.has(component))) optimizeEarly()
  if (component !== undefined && agents.has(component)) keepYoungGenerationSmall()
  if (role === 'part') endWithParent()
  if (role === 'dialer') (await import('./layouts/dialerProcess.ts')).runDialerProcess()
  else if (role === 'network-probe') await (await import('./component/kubelet/networkProbeProcess.ts')).runProbeProcess()
  else if (role === 'cni-plugin') await (await import('./layouts/cniPluginProcess.ts')).runCniPlugin()
  else if (role === 'forwarder') (await import('./layouts/forwarderProcess.ts')).runForwarderProcess()
  else if (isClusterServer) await runRole('server', rest)
  else if (role === 'balancer' || role === 'node-agent' || role === 'node-ingress' || role === 'supervise') await runRole(role, rest)
  else if (role === 'server' && rest[0] === 'run') await runComponent('server run', rest.slice(1))
  else if (role === 'etcd' && rest[0] === 'serve') await runComponent('etcd serve', rest.slice(1))
  else if (role === 'nodegroup' && rest[0] === 'serve') await runComponent('nodegroup serve', rest.slice(1))
  else if (role === 'part' && rest[0] !== undefined && Object.hasOwn(components, rest[0])) await runComponent(rest[0] as keyof typeof components, rest.slice(1))
  else if (role !== undefined && Object.hasOwn(components, role)) await runComponent(role as keyof typeof components, rest)
  else await (await import('./commandLine.ts')).runCommandLine(process.argv)
} catch (error) {
  console.error(`skiff: ${printable(describeError(error))}`)
  process.exit(1)
}

/**
 * What a node spends, its pods cannot have. V8 lets the young generation double up to 32 MB while pods start and may keep it long after; with 2 MB a
 * burst costs some tenth more CPU and 40 MB less.
 */
function keepYoungGenerationSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

/** Runs until a signal asks it to end; a second signal ends it at once. */
async function runRole(role: 'server' | 'balancer' | 'node-agent' | 'node-ingress' | 'supervise', args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      'cluster-dir': { type: 'string' },
      name: { type: 'string', default: 'server' },
      config: { type: 'string' },
      v: { type: 'string', default: '2' },
    },
  })
  const stopping = stoppedBySignals()
  const verbosity = Number(values.v)
  if (role === 'node-agent' || role === 'node-ingress') {
    if (!values.config) throw new Error(`${role} needs --config FILE`)
    // The server holds the other end: when it is gone, so are we, and the containers run on.
    process.stdin.resume()
    process.stdin.once('end', () => stopping.abort(new Error('the server is gone')))
    await endWhenMissing(values.config, stopping.signal)
    const run =
      role === 'node-agent' ? (await import('./layouts/nodeAgent.ts')).runNodeAgent : (await import('./layouts/ingress/nodeIngress.ts')).runNodeIngress
    await run(values.config, verbosity, stopping.signal)
  } else {
    const directory = values['cluster-dir']
    if (!directory) throw new Error(`${role} needs --cluster-dir DIR`)
    await endWhenMissing(`${directory}/cluster.json`, stopping.signal)
    if (role === 'server') await (await import('./layouts/server.ts')).runServer(directory, values.name, verbosity, stopping.signal)
    else if (role === 'balancer') await (await import('./layouts/balancer.ts')).runBalancer(directory, verbosity, stopping.signal)
    else await (await import('./supervisor/supervisor.ts')).runSupervisor(directory, verbosity, stopping.signal)
  }
  process.exit(0)
}

/** The process that started this one holds the other end of its standard input. */
function endWithParent(): void {
  process.stdin.resume()
  process.stdin.once('end', () => process.kill(process.pid, 'SIGTERM'))
}

/** At once, when the file is gone: an orderly end would write into the removed directory of the cluster, and make it again. */
async function endWhenMissing(file: string, signal: AbortSignal): Promise<void> {
  const [{ untilMissing }, { createRealClock }] = await Promise.all([import('./supervisor/untilMissing.ts'), import('./realClock.ts')])
  void untilMissing(file, createRealClock(), signal).then(() => {
    if (signal.aborted) return
    console.error(`skiff: ${printable(file)} is gone: the directory of the cluster was removed`)
    process.exit(1)
  })
}

/** One component alone, with upstream's flags, in the foreground. Command lines that cannot be read end with 2. */
async function runComponent(name: keyof typeof components, args: string[]): Promise<void> {
  process.exit(await components[name](args, stoppedBySignals().signal))
}

function stoppedBySignals(): AbortController {
  const stopping = new AbortController()
  // Every component listens; Node warns from the eleventh listener on.
  setMaxListeners(0, stopping.signal)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(130)
      stopping.abort(new Error(signal))
    })
  }
  // An unhandled rejection is a bug, and is logged; it does not end a cluster. An uncaught exception still ends the process.
  process.on('unhandledRejection', (reason) => {
    console.error(`skiff: unhandled rejection: ${printableError(reason)}`)
  })
  return stopping
}
