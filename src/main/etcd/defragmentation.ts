/**
 * Defragments the members of a cluster's own etcd (L5): compaction leaves free pages in a member's file, which only a rewrite gives back. A member answers
 * nothing while it rewrites: one at a time, only while all are healthy, the leader last. Upstream leaves this to etcd's administrator.
 */
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { createEtcdAdministration, type EtcdAdministration, type EtcdMemberStatus } from '#store/drivers/etcd/administration'
import { type ClusterPaths, readState } from '../localCluster/clusterState.ts'
import { ensureEtcdPki } from '../pki/etcdPki.ts'
import { clientUrlOf, etcdPkiFolder } from './members.ts'

const lookEveryMs = 10 * 60_000
/** Smaller files are not worth a pause. */
const leastBytes = 100 * 1024 * 1024
/** Share of the file. */
const leastFreeShare = 0.5

export interface MemberState extends Pick<EtcdMemberStatus, 'dbSize' | 'dbSizeInUse' | 'isLeader'> {
  readonly url: string
}

/** Members whose file is at least half free, the leader last. Pure. */
export function dueMembers(members: readonly MemberState[], smallest = leastBytes): readonly string[] {
  return members
    .filter(({ dbSize, dbSizeInUse }) => dbSize >= smallest && dbSizeInUse <= dbSize * (1 - leastFreeShare))
    .sort((a, b) => Number(a.isLeader) - Number(b.isLeader))
    .map(({ url }) => url)
}

/** Defragments the members that are due. The leader may change meanwhile: each is asked again before its turn. @returns their URLs, in order */
export async function defragmentDue(urls: readonly string[], etcd: EtcdAdministration, log: Logger, smallest?: number): Promise<string[]> {
  const done: string[] = []
  for (;;) {
    const states = await Promise.all(urls.map(async (url) => ({ url, ...(await etcd.status(url)) })))
    const next = dueMembers(states, smallest).find((url) => !done.includes(url))
    if (next === undefined) return done
    await etcd.defragment(next)
    done.push(next)
    const { dbSize } = await etcd.status(next)
    log.info('Defragmented a member of etcd', { member: next, before: states.find(({ url }) => url === next)?.dbSize ?? 0, after: dbSize })
  }
}

export function defragmentation(paths: ClusterPaths, { clock, log }: { readonly clock: Clock; readonly log: Logger }): Component {
  return {
    name: 'etcd defragmentation',
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(lookEveryMs, signal).catch(() => {})
        // A member that does not answer: the others must not pause now.
        if (!signal.aborted) await look(paths, clock, log).catch((error: unknown) => log.error(error, 'The members of etcd were not defragmented'))
      }
    },
  }
}

async function look(paths: ClusterPaths, clock: Clock, log: Logger): Promise<void> {
  const urls = ((await readState(paths))?.etcd?.members ?? []).map(clientUrlOf)
  const { ca, client } = await ensureEtcdPki(etcdPkiFolder(paths), clock.now())
  const etcd = createEtcdAdministration(urls, { ca: ca.cert, ...client })
  try {
    await defragmentDue(urls, etcd, log)
  } finally {
    etcd.close()
  }
}
