/**
 * Gives each pod with a user namespace a range of ids (L3), recorded in the pod's directory so that a restarted kubelet reuses none.
 * Upstream: kubelet/userns/userns_manager.go (v1.36).
 */
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '#base/messageOf'
import { listIfExists, makeDirectory, readTextIfExists, writeFileAtomic } from '#host/files'
import type { KubeletContext } from '../core/context.ts'
import { checkedRange, IdRanges, kubeletIds, mappingsOf, nodeUsers, rangeOf, type UserNamespaces, unitLength } from '../core/idRanges.ts'
import { podDirectory } from '../core/podDirectory.ts'
import { findHandler } from '../core/runtimeHandlers.ts'

const fileName = 'userns'

/** Reads what the pods of an earlier run have. Without a host there is nothing to map. @throws when the node's configuration does not fit */
export async function createUserNamespaces({ config, host, runtime }: Pick<KubeletContext, 'config' | 'host' | 'runtime'>): Promise<UserNamespaces> {
  if (!host) return { prepare: async () => {}, of: () => nodeUsers, releaseOthers: async () => {} }
  const length = config.userNamespaces.idsPerPod ?? unitLength
  const text = async (path: string) => (await readTextIfExists(host.path(path))) ?? ''
  const all = kubeletIds(await text('/etc/subuid'), await text('/etc/subgid'), length)
  const ranges = new IdRanges(checkedRange(all, length, config.maxPods), length)
  const file = (uid: string) => host.path(`${podDirectory(config.rootDirectory, uid)}/${fileName}`)
  for (const uid of await listIfExists(host.path(`${config.rootDirectory}/pods`))) {
    const known = await readTextIfExists(file(uid))
    if (known) recordKnown(ranges, uid, known)
  }
  return {
    async prepare({ metadata: { uid = '' }, spec }, runtimeHandler) {
      if (spec.hostUsers !== false) return
      await checkSupport(runtime, runtimeHandler)
      if (ranges.get(uid)) return
      const range = ranges.allocate(uid)
      try {
        await makeDirectory(dirname(file(uid)), 0o750)
        await writeFileAtomic(file(uid), JSON.stringify(mappingsOf(range)), 0o600)
      } catch (error) {
        ranges.release(uid)
        throw error
      }
    },
    of({ metadata: { uid = '' }, spec }) {
      const range = spec.hostUsers === false ? ranges.get(uid) : undefined
      if (!range) return nodeUsers
      const mappings = [...mappingsOf(range).uidMappings]
      return { mode: 'POD', uids: mappings, gids: mappings }
    },
    async releaseOthers(isKnown) {
      for (const uid of ranges.owners()) {
        if (isKnown(uid)) continue
        await rm(file(uid), { force: true })
        ranges.release(uid)
      }
    },
  }
}

function recordKnown(ranges: IdRanges, uid: string, text: string): void {
  try {
    ranges.record(uid, rangeOf(text))
  } catch (error) {
    throw new Error(`record pod mappings for existing pod "${uid}": ${messageOf(error)}`)
  }
}

/** A runtime that cannot would run the pod as the node's own users, without a word. */
async function checkSupport(runtime: KubeletContext['runtime'], runtimeHandler: string): Promise<void> {
  const handler = await findHandler({ runtime }, runtimeHandler)
  if (handler?.features?.userNamespaces) return
  const who = runtimeHandler ? `RuntimeClass handler "${runtimeHandler}"` : 'runtime'
  const unknown = handler ? '' : `: the handler "${runtimeHandler}" is not known`
  throw new Error(`can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces${unknown}`)
}
