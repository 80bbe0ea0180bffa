/**
 * Settings of the host that kube-proxy makes at its start (L5): limits of connection tracking, and the process's score for the kernel when memory is short. A
 * setting that the host refuses is logged: containers often see them read-only. Upstream: setupConntrack of cmd/kube-proxy/app/server_linux.go (v1.36).
 */
import fs from 'node:fs/promises'
import os from 'node:os'
import { parseDuration } from '#api/machinery/duration'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { ConntrackDocument } from '#proxy/configuration/document'

const netfilter = '/proc/sys/net/netfilter'

/** File below /proc/sys/net/netfilter → value. */
export function conntrackSettings(conntrack: ConntrackDocument, processors: number): ReadonlyMap<string, number> {
  const { maxPerCore, min, tcpBeLiberal } = conntrack
  const seconds = (text: string) => Math.trunc((parseDuration(text) ?? 0) / 1000)
  const wanted: readonly [string, number][] = [
    ['nf_conntrack_max', maxPerCore > 0 ? Math.max(maxPerCore * processors, min) : 0],
    ['nf_conntrack_tcp_timeout_established', seconds(conntrack.tcpEstablishedTimeout)],
    ['nf_conntrack_tcp_timeout_close_wait', seconds(conntrack.tcpCloseWaitTimeout)],
    ['nf_conntrack_tcp_be_liberal', tcpBeLiberal ? 1 : 0],
    ['nf_conntrack_udp_timeout', seconds(conntrack.udpTimeout)],
    ['nf_conntrack_udp_timeout_stream', seconds(conntrack.udpStreamTimeout)],
  ]
  // 0: as the host has it.
  return new Map(wanted.filter(([, value]) => value > 0))
}

export async function applyHostSettings(conntrack: ConntrackDocument, oomScoreAdj: number, log: Logger): Promise<void> {
  const files = [...conntrackSettings(conntrack, os.availableParallelism())].map(([name, value]) => [`${netfilter}/${name}`, value] as const)
  for (const [file, value] of [...files, ['/proc/self/oom_score_adj', oomScoreAdj] as const]) {
    try {
      if (Number((await fs.readFile(file, 'utf8')).trim()) !== value) await fs.writeFile(file, String(value))
    } catch (error) {
      log.warn('A setting of the host could not be made', { file, value, error: messageOf(error) })
    }
  }
}
