/**
 * The program's entry (L5): long-running roles start at once with their own small parser; everything else is the command line.
 * Each path loads only what it needs, because start-up time is a promise.
 */
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { printable, printableError } from '#base/printable'
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
}

try {
  if (role === 'kubelet' || role === 'node-agent') keepYoungGenerationSmall()
  if (role === 'dialer') (await import('./layouts/dialerProcess.ts')).runDialerProcess()
  else if (role === 'server' || role === 'node-agent') await runRole(role, rest)
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
async function runRole(name: 'server' | 'node-agent', args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { 'cluster-dir': { type: 'string' }, config: { type: 'string' }, v: { type: 'string', default: '2' } } })
  const stopping = stoppedBySignals()
  const verbosity = Number(values.v)
  if (name === 'server') {
    if (!values['cluster-dir']) throw new Error('server needs --cluster-dir DIR')
    const { runServer } = await import('./layouts/server.ts')
    await runServer(values['cluster-dir'], verbosity, stopping.signal)
  } else {
    if (!values.config) throw new Error('node-agent needs --config FILE')
    // The server holds the other end: when it is gone, so are we, and the containers run on.
    process.stdin.resume()
    process.stdin.once('end', () => stopping.abort(new Error('the server is gone')))
    const { runNodeAgent } = await import('./layouts/nodeAgent.ts')
    await runNodeAgent(values.config, verbosity, stopping.signal)
  }
  process.exit(0)
}

/** One component alone, with upstream's flags, in the foreground. Command lines that cannot be read end with 2. */
async function runComponent(name: keyof typeof components, args: string[]): Promise<void> {
  process.exit(await components[name](args, stoppedBySignals().signal))
}

function stoppedBySignals(): AbortController {
  const stopping = new AbortController()
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
