/**
 * Upgrades of the kubelet's API (L3): exec, attach and port-forward, in WebSocket or SPDY, carried to the runtime's own streaming server
 * or served by the runtime. Upstream: kubelet/server/server.go getExec, getAttach, getPortForward (v1.36).
 */
import type { RequestOptions } from 'node:https'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { messageOf } from '#base/messageOf'
import { acceptPortForward, acceptRemoteCommand } from '#streaming/remoteCommand'
import { dialPortForward, dialRemoteCommand } from '#streaming/spdyClient'
import type { PortForwardConnection, RemoteCommandOptions, RemoteCommandSession } from '#streaming/streams'
import type { Upgrade } from '#streaming/upgrade'
import type { KubeletView } from '../core/kubeletView.ts'
import { findContainer, readPodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import type { StreamTarget } from '../core/runtimeService.ts'
import { HttpError } from './httpError.ts'

const truthy = (value: string | null) => value === '1' || value === 'true'

export function streamOptions(query: URLSearchParams): RemoteCommandOptions {
  const tty = truthy(query.get('tty'))
  const options = { tty, stdin: truthy(query.get('input')), stdout: truthy(query.get('output')), stderr: truthy(query.get('error')) && !tty }
  if (!options.stdin && !options.stdout && !options.stderr) throw new HttpError(400, 'you must specify at least 1 of stdin, stdout, stderr')
  return options
}

/** The URL's connection, opened from the node's network: the runtime's streaming server listens on its loopback. */
async function through(view: KubeletView, url: string): Promise<{ readonly tls?: RequestOptions }> {
  const host = view.context()?.host
  if (!host) return {}
  const { hostname, port } = new URL(url)
  const socket = await host.dial(hostname, Number(port))
  socket.on('error', () => {})
  return { tls: { createConnection: () => socket } }
}

/** {namespace}/{pod}/{container}, or with the pod's uid before the container. */
async function runningContainer(view: KubeletView, [namespace = '', name = '', ...rest]: readonly string[]): Promise<string> {
  const pod = view.pod(namespace, name)
  const [container = '', uid] = [...rest].reverse()
  if (!pod || (uid !== undefined && uid !== pod.metadata.uid)) throw new HttpError(404, 'pod does not exist')
  const record = findContainer(await readPodRuntimeStatus(view.runtime, pod.metadata.uid ?? ''), container)
  if (!record) throw new HttpError(404, `container not found ("${container}")`)
  if (record.state !== 'running') throw new HttpError(400, `container not running (${record.id})`)
  return record.id
}

/** GET or POST /exec/{namespace}/{pod}/{container}?command=… and /attach/…. */
export async function remoteCommand(view: KubeletView, what: 'exec' | 'attach', path: readonly string[], query: URLSearchParams, upgrade: Upgrade) {
  const options = streamOptions(query)
  const id = await runningContainer(view, path)
  const target = what === 'exec' ? await view.runtime.exec(id, query.getAll('command'), options) : await view.runtime.attach(id, options)
  const session = await acceptRemoteCommand(upgrade, options)
  try {
    await serve(view, target, options, session)
  } catch (error) {
    await session.finish({ error: messageOf(error) })
  }
}

const runTimeoutSeconds = 600

/** POST /run/{namespace}/{pod}/{container}?cmd=…: the command's output, both streams together. */
export async function runCommand(view: KubeletView, path: readonly string[], command: readonly string[]): Promise<Uint8Array> {
  const result = await view.runtime.execSync(await runningContainer(view, path), command, runTimeoutSeconds)
  const output = Buffer.concat([Buffer.from(result.stdout), Buffer.from(result.stderr)])
  if (result.exitCode !== 0) throw new HttpError(500, `command '${command.join(' ')}' exited with ${result.exitCode}: ${output.toString()}`)
  return output
}

async function serve(
  view: KubeletView,
  target: StreamTarget<RemoteCommandSession>,
  options: RemoteCommandOptions,
  session: RemoteCommandSession,
): Promise<void> {
  if ('serve' in target) return target.serve(session)
  const remote = await dialRemoteCommand(target.url, options, { ...(await through(view, target.url)), signal: session.signal })
  const copied = Promise.allSettled([
    remote.stdout && session.stdout && pipeline(remote.stdout, session.stdout, { end: false }),
    remote.stderr && session.stderr && pipeline(remote.stderr, session.stderr, { end: false }),
  ])
  // Standard input ends with the client's stream or with the command; the session does not wait for it.
  if (remote.stdin && session.stdin) pipeline(session.stdin, remote.stdin).catch(() => {})
  const resizes = session.resizes
  if (resizes) void forwardResizes(resizes, remote.resize).catch(() => {})
  try {
    const result = await remote.result
    await copied
    await session.finish(result)
  } finally {
    remote.close()
  }
}

async function forwardResizes(resizes: NonNullable<RemoteCommandSession['resizes']>, resize: (size: { width: number; height: number }) => void): Promise<void> {
  for await (const size of resizes) resize(size)
}

/** GET or POST /portForward/{namespace}/{pod}. */
export async function portForward(
  view: KubeletView,
  [namespace = '', name = '', uid]: readonly string[],
  query: URLSearchParams,
  upgrade: Upgrade,
): Promise<void> {
  const pod = view.pod(namespace, name)
  if (!pod) throw new HttpError(404, 'pod does not exist')
  if (uid !== undefined && uid !== pod.metadata.uid) throw new HttpError(404, 'pod not found')
  const status = await readPodRuntimeStatus(view.runtime, pod.metadata.uid ?? '')
  const sandbox = status.sandboxes.find((candidate) => candidate.state === 'SANDBOX_READY')
  if (!sandbox) throw new HttpError(400, `no running sandbox for pod ${name}`)
  const ports = query.getAll('port').flatMap((text) => text.split(',').map(Number))
  const target = await view.runtime.portForward(sandbox.id, ports)
  const remote = 'url' in target ? await dialPortForward(target.url, await through(view, target.url)) : undefined
  const connect = async (port: number): Promise<{ data: Duplex; error: Promise<string> }> => {
    if (remote) return remote.connect(port)
    if ('connect' in target) return { data: await target.connect(port), error: Promise.resolve('') }
    throw new Error('nothing to connect to')
  }
  try {
    await acceptPortForward(upgrade, ports, (connection) => {
      forward(connection, connect).catch((error: unknown) => connection.fail(messageOf(error)))
    })
  } finally {
    remote?.close()
  }
}

async function forward(connection: PortForwardConnection, connect: (port: number) => Promise<{ data: Duplex; error: Promise<string> }>): Promise<void> {
  const { data, error } = await connect(connection.port)
  error.then(
    (message) => message && connection.fail(message),
    () => {},
  )
  await Promise.all([pipeline(connection.data, data), pipeline(data, connection.data)])
}
