/**
 * Makes logind delay a shutdown for as long as the node's pods may take (L3): its default limit is five seconds, and a longer
 * lock has no effect. Upstream: kubelet/nodeshutdown/systemd/inhibit_linux.go, nodeshutdown_manager_linux.go start (v1.36).
 */

import { writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '#base/messageOf'
import { makeDirectory } from '#host/files'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'

const login = ['org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager']
const systemd = ['org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager']
const file = '/etc/systemd/logind.conf.d/99-kubelet.conf'
const timeoutMs = 10_000
/** logind reloads its configuration some time after the signal. */
const attempts = 5
const firstWaitMs = 100
const hangUp = '1'

type Context = Pick<KubeletContext, 'clock' | 'log'>

/** The limit from logind's answer, such as `t 5000000` in microseconds; undefined for any other answer. */
async function currentMs({ exec }: KubeletHost): Promise<number | undefined> {
  const { stdout } = await exec.run('busctl', ['--system', 'get-property', ...login, 'InhibitDelayMaxUSec'], { timeoutMs })
  const us = /^t (\d+)/.exec(stdout)?.[1]
  return us === undefined ? undefined : Number(us) / 1000
}

/** Raises logind's limit if it is below `wantedMs`. A failure is logged: pods then have logind's own limit. */
export async function ensureInhibitDelay({ clock, log }: Context, host: KubeletHost, wantedMs: number, signal: AbortSignal): Promise<void> {
  let delayMs = await currentMs(host)
  if (delayMs === undefined || delayMs >= wantedMs) return
  try {
    const path = host.path(file)
    await makeDirectory(dirname(path), 0o755)
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
