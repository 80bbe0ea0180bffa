/**
 * Sees to it that logind delays a shutdown for as long as the node's pods may take (L3): its own limit is five seconds unless somebody raised it, and a longer
 * lock is worth nothing. Upstream: kubelet/nodeshutdown/systemd/inhibit_linux.go, nodeshutdown_manager_linux.go start (v1.36).
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '#base/messageOf'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'

const login = ['org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager']
const systemd = ['org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager']
const file = '/etc/systemd/logind.conf.d/99-kubelet.conf'
const timeoutMs = 10_000
/** logind reads its configuration some time after it was told to. */
const attempts = 5
const firstWaitMs = 100
const hangUp = '1'

type Context = Pick<KubeletContext, 'clock' | 'log'>

/** What logind says; undefined when it says something else. `t 5000000`, in microseconds. */
async function currentMs({ exec }: KubeletHost): Promise<number | undefined> {
  const { stdout } = await exec.run('busctl', ['--system', 'get-property', ...login, 'InhibitDelayMaxUSec'], { timeoutMs })
  const us = /^t (\d+)/.exec(stdout)?.[1]
  return us === undefined ? undefined : Number(us) / 1000
}

/** Raises logind's limit where it is below `wantedMs`. What cannot be done is told: pods then have the time that logind gives. */
export async function ensureInhibitDelay({ clock, log }: Context, host: KubeletHost, wantedMs: number, signal: AbortSignal): Promise<void> {
  let delayMs = await currentMs(host)
  if (delayMs === undefined || delayMs >= wantedMs) return
  try {
    const path = host.path(file)
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    await writeFile(path, `# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=${Math.round(wantedMs / 1000)}\n`, { mode: 0o644 })
  } catch (error) {
    log.warn('Unable to override the inhibit delay of logind', { file, error: messageOf(error) })
    return
  }
  await host.exec.run('busctl', ['--system', 'call', ...systemd, 'KillUnit', 'ssi', 'systemd-logind.service', 'all', hangUp], { timeoutMs })
  for (let attempt = 0; attempt < attempts && !signal.aborted; attempt++) {
    await clock.sleep(firstWaitMs * 2 ** attempt, signal).catch(() => {})
    delayMs = await currentMs(host)
    if (delayMs !== undefined && delayMs >= wantedMs) return
  }
  if (!signal.aborted) {
    const state = { wantedSeconds: wantedMs / 1000, currentSeconds: (delayMs ?? 0) / 1000, attempts }
    log.warn('Timed out waiting for logind InhibitDelayMaxSec to be updated: raise it in logind.conf, or pods are cut short when the node shuts down', state)
  }
}
