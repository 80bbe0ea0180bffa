/**
 * Finds the plugins that put a socket into plugins_registry (L3, edge), asks for their type, and lets the handler of that type register them; a socket
 * that was removed or created again ends the registration. Upstream: kubelet/pluginmanager (v1.36).
 */
import { type FSWatcher, watch } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '#base/clock'
import { least } from '#base/extremes'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { Metrics } from '#base/metrics'
import { createWakeUp } from '#base/wakeUp'
import { pluginRegistrationProto } from '#grpc/proto/pluginRegistration'
import { maxSocketPath } from '#grpc/unixServer'
import { connectUnixService } from '#grpc/unixService'
import { listIfExists, makeDirectory } from '#host/files'
import type { PluginHandler, PluginInfo } from '../../core/pluginHandler.ts'

export interface PluginWatcherDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  /** plugins_registry as this process sees it. */
  readonly directory: string
  /** From a path of the node to a path of this process. */
  path(nodePath: string): string
  readonly handlers: readonly PluginHandler[]
}

const callTimeoutMs = 10_000
const firstRetryMs = 500
const maxRetryMs = 122_000
/** What a change notification missed is seen at the latest then. */
const rescanMs = 10_000
const maxPlugins = 1_000

interface Known {
  /** Identity of the socket file: another file of the same name is another plugin. */
  readonly identity: string
  plugin: PluginInfo | undefined
  /** A plugin may take minutes to answer, and others do not wait for it. */
  introduction: Promise<void> | undefined
  retryAtMs: number
  retryMs: number
}

/** Watches until aborted. */
export async function watchPlugins(deps: PluginWatcherDeps, signal: AbortSignal): Promise<void> {
  const { clock, directory } = deps
  const known = new Map<string, Known>()
  const bell = createWakeUp()
  await makeDirectory(directory, 0o750)
  const watcher = watchDirectory(directory, bell.ring)
  const count = pluginCounter(deps)
  try {
    while (!signal.aborted) {
      await reconcile(deps, known, bell.ring)
      count(known)
      const dueMs = [...known.values()].flatMap(({ plugin, introduction, retryAtMs }) => (plugin || introduction ? [] : [retryAtMs - clock.now()]))
      const timer = clock.timer(Math.max(1, least(dueMs, rescanMs)), bell.ring)
      await bell.wait(signal)
      timer.cancel()
    }
  } finally {
    watcher?.close()
    await Promise.all([...known.values()].map(({ introduction }) => introduction))
  }
}

/** Tells which sockets there are, and of which the plugin is registered. */
function pluginCounter({ metrics, directory }: PluginWatcherDeps): (known: ReadonlyMap<string, Known>) => void {
  const total = metrics.gauge({ name: 'plugin_manager_total_plugins', help: 'Plugins of the node, by socket and state.', labels: ['socket_path', 'state'] })
  let reported: { readonly socket_path: string; readonly state: string }[] = []
  return (known) => {
    const now = [...known].flatMap(([name, { plugin }]) => {
      const socket_path = join(directory, name)
      return [{ socket_path, state: 'desired_state_of_world' }, ...(plugin ? [{ socket_path, state: 'actual_state_of_world' }] : [])]
    })
    for (const labels of reported) total.remove(labels)
    for (const labels of now) total.set(1, labels)
    reported = now
  }
}

/** Undefined where the machine has no watches left: then only rescans find changes. */
function watchDirectory(directory: string, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, changed)
    watcher.on('error', changed)
    return watcher
  } catch {
    return undefined
  }
}

function forget({ handlers }: PluginWatcherDeps, plugin: PluginInfo): void {
  handlers.find(({ type }) => type === plugin.type)?.deregister(plugin)
}

async function socketsIn(directory: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const name of (await listIfExists(directory)).sort()) {
    if (name.startsWith('.') || found.size >= maxPlugins) continue
    const stats = await lstat(join(directory, name)).catch(() => undefined)
    // A plugin may change the mode of its socket once it listens: that is no other socket.
    if (stats?.isSocket()) found.set(name, `${stats.ino}/${stats.birthtimeMs}`)
  }
  return found
}

async function reconcile(deps: PluginWatcherDeps, known: Map<string, Known>, changed: () => void): Promise<void> {
  const { clock, directory } = deps
  const sockets = await socketsIn(directory)
  for (const [name, { identity, plugin, introduction }] of known) {
    // One at a time: what is introduced now is forgotten before the next socket of that name is introduced.
    if (introduction || sockets.get(name) === identity) continue
    known.delete(name)
    if (plugin) forget(deps, plugin)
  }
  for (const [name, identity] of sockets) {
    const entry = known.get(name) ?? { identity, plugin: undefined, introduction: undefined, retryAtMs: 0, retryMs: firstRetryMs }
    known.set(name, entry)
    if (entry.plugin || entry.introduction || clock.now() < entry.retryAtMs) continue
    entry.introduction = tryIntroduce(deps, name, entry).then(changed)
  }
}

async function tryIntroduce(deps: PluginWatcherDeps, name: string, entry: Known): Promise<void> {
  const { clock, log, directory } = deps
  try {
    entry.plugin = await introduce(deps, join(directory, name))
    log.info('Registered a plugin', { type: entry.plugin.type, plugin: entry.plugin.name })
  } catch (error) {
    log.warn('Registering a plugin failed', { socket: name, error: messageOf(error) })
    entry.retryAtMs = clock.now() + entry.retryMs
    entry.retryMs = Math.min(maxRetryMs, entry.retryMs * 2)
  } finally {
    entry.introduction = undefined
  }
}

/** Asks for the plugin's type, registers the plugin, and sends it the result. */
async function introduce({ handlers, path }: PluginWatcherDeps, socket: string): Promise<PluginInfo> {
  if (Buffer.byteLength(socket) > maxSocketPath) throw new Error(`the path of a socket has at most ${maxSocketPath} bytes: ${socket}`)
  const service = connectUnixService(pluginRegistrationProto, 'pluginregistration.Registration', `unix:${socket}`)
  try {
    const info = await service.call<PluginInfo>('GetInfo', {}, callTimeoutMs)
    const plugin = { ...info, endpoint: info.endpoint === '' ? socket : path(info.endpoint) }
    let error = ''
    try {
      const handler = handlers.find(({ type }) => type === info.type)
      if (!handler) throw new Error(`no handler registered for plugin type: ${info.type} at socket ${socket}`)
      await handler.register(plugin)
    } catch (reason) {
      error = messageOf(reason)
    }
    await service.call('NotifyRegistrationStatus', { pluginRegistered: error === '', error }, callTimeoutMs)
    if (error !== '') throw new Error(error)
    return plugin
  } finally {
    service.close()
  }
}
