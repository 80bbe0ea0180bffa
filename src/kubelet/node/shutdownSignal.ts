/**
 * Watches systemd-logind for a shutdown of the machine, and delays it until the pods have ended (L3). logind delays a shutdown by its own
 * InhibitDelayMaxSec at most, which is raised where pods may take longer. Upstream: kubelet/nodeshutdown/systemd, nodeshutdown_manager_linux.go (v1.36).
 */
import { createInterface } from 'node:readline'
import type { KubeletContext } from '../core/context.ts'
import { ensureInhibitDelay } from './inhibitDelay.ts'

export interface ShutdownListener {
  /** Resolves when the machine may shut down. */
  shutDown(): Promise<void>
  cancel(): void
}

const retryMs = 1_000
const match = "type='signal',interface='org.freedesktop.login1.Manager',member='PrepareForShutdown',path='/org/freedesktop/login1'"
const inhibit = ['--what=shutdown', '--mode=delay', '--who=kubelet', '--why=Kubelet needs time to handle node shutdown', 'cat']

/** True: the machine shuts down; false: the shutdown was cancelled; undefined: a line about something else. */
export function preparesForShutdown(line: string): boolean | undefined {
  try {
    const message = JSON.parse(line) as { member?: string; payload?: { data?: unknown[] } }
    const [value] = message.member === 'PrepareForShutdown' ? (message.payload?.data ?? []) : []
    return typeof value === 'boolean' ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Until aborted. `periodMs`: how long the pods may take altogether. On a machine without logind a warning is logged once, and shutdowns do not wait for pods.
 */
export async function watchForShutdown(context: KubeletContext, listener: ShutdownListener, periodMs: number, signal: AbortSignal): Promise<void> {
  const { host, clock, log } = context
  if (!host) return
  const probe = await host.exec.run('busctl', ['--system', 'status', 'org.freedesktop.login1'], { timeoutMs: 10_000, signal })
  if (probe.code !== 0) {
    if (!signal.aborted) log.warn('Failed to start node shutdown manager: systemd-logind does not answer', { error: probe.stderr.trim() })
    return
  }
  await ensureInhibitDelay(context, host, periodMs, signal)
  while (!signal.aborted) {
    // The lock lasts as long as the program; its input stays open until we are done.
    const lock = host.exec.spawn('systemd-inhibit', inhibit, { signal })
    const monitor = host.exec.spawn('busctl', ['--system', '--json=short', 'monitor', '--match', match], { signal })
    for (const child of [lock, monitor]) child.on('error', (error) => signal.aborted || log.warn('Failed to watch for a shutdown', { error: error.message }))
    for await (const line of createInterface({ input: monitor.stdout })) {
      const going = preparesForShutdown(line)
      if (going === undefined) continue
      if (!going) listener.cancel()
      else {
        await listener.shutDown()
        break
      }
    }
    lock.stdin.end()
    lock.kill()
    monitor.kill()
    await clock.sleep(retryMs, signal).catch(() => {})
  }
}
