/** The host path CSI driver of a local cluster, turned on and off (L5). */
import { CommandError } from '#cli/exitCodes'
import type { AddonPlan } from './addonPlan.ts'
import type { ApiProbe } from './apiProbe.ts'
import { handlesOfHostPath } from './hostPathContent.ts'
import { simulatedNodesOf } from './simulatedPlan.ts'

const driver = 'hostpath.csi.skiff.dev'
const volumes = '/api/v1/persistentvolumes'
const contents = ['/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents', '/apis/groupsnapshot.storage.k8s.io/v1/volumegroupsnapshotcontents']
const mostNamed = 5

export const csiHostPath: AddonPlan = {
  name: 'csi-hostpath',
  title: 'Host path CSI driver',
  key: 'csiHostPath',
  checkRemoval: async (probe, paths, state) => {
    const found = await Promise.all([volumes, ...contents].map((path) => itemsOf(probe, path)))
    const objects = found.flat().filter(({ spec }) => (spec?.csi ?? spec)?.driver === driver)
    const named = new Set(objects.map(({ spec, status }) => spec?.csi?.volumeHandle ?? status?.snapshotHandle))
    const unnamed = (await handlesOfHostPath(driver, paths, state)).filter((handle) => !named.has(handle))
    const used = [...objects.map(({ metadata }) => metadata.name), ...unnamed.map((handle) => `${handle}, which no object of the API names`)]
    if (used.length === 0) return
    throw new CommandError('conflict', `the driver has volumes or snapshots that would be lost: ${used.length}`, {
      hint: 'delete their claims and VolumeSnapshots first, and backups that keep snapshots',
      details: used.slice(0, mostNamed),
    })
  },
  isThere: async (state, probe) => {
    const registered = await registrations(probe)
    return registered && registered.length >= state.nodes.length + simulatedNodesOf(state).length ? true : undefined
  },
  isGone: async (_, probe) => {
    const [storageClass, csiDriver] = await Promise.all(
      ['storageclasses/csi-hostpath', `csidrivers/${driver}`].map((path) => probe.get(`/apis/storage.k8s.io/v1/${path}`)),
    )
    return storageClass?.status === 404 && csiDriver?.status === 404 && (await registrations(probe))?.length === 0 ? true : undefined
  },
}

interface Item {
  readonly metadata: { readonly name: string }
  readonly spec?: {
    readonly driver?: string
    readonly csi?: { readonly driver: string; readonly volumeHandle?: string }
    readonly drivers?: readonly { readonly name: string }[] | null
  }
  readonly status?: { readonly snapshotHandle?: string }
}

/** None when the kind is not served. @throws CommandError when the list cannot be read */
async function itemsOf(probe: ApiProbe, path: string): Promise<readonly Item[]> {
  const answer = await probe.get(path)
  if (answer?.status === 404) return []
  if (answer?.status !== 200) throw new CommandError('timeout', `the API server does not list ${path}`)
  return (JSON.parse(answer.body) as { items: readonly Item[] }).items
}

/** The nodes that have the driver. Undefined when the API server does not answer, which is busy while many nodes register: the caller asks again. */
async function registrations(probe: ApiProbe): Promise<readonly Item[] | undefined> {
  const answer = await probe.get('/apis/storage.k8s.io/v1/csinodes')
  if (answer?.status !== 200) return undefined
  const { items } = JSON.parse(answer.body) as { items: readonly Item[] }
  return items.filter(({ spec }) => spec?.drivers?.some(({ name }) => name === driver))
}
