/**
 * Publishes how much room the driver has (L3): one CSIStorageCapacity for each class whose volumes wait for a pod, in each topology. The scheduler passes over nodes
 * without room for a claim. Upstream: external-provisioner, pkg/capacity.
 */
import type { Node } from '#api/gen/types/core.v1'
import type { CSIStorageCapacity, StorageClass } from '#api/gen/types/storage.v1'
import { volumeReaches } from '#api/helpers/volumes'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { formatQuantity, quantityOf } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'
import { csiNodes, csiStorageCapacities, nodes, storageClasses } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import { unlessGone } from '#client/unlessGone'
import { createReconciler, everyPeriod, type Reconciler } from '#controllers/framework/reconciler'
import { type CsiContext, retryLimiter } from '../context.ts'
import { type ClusterTopology, type Term, topologySegments } from './topology.ts'

type Capacity = Frozen<CSIStorageCapacity>

const driverLabel = 'csi.storage.k8s.io/drivername'
const managerLabel = 'csi.storage.k8s.io/managed-by'
const manager = 'external-provisioner'

/** A class in a topology. */
interface Place {
  readonly className: string
  readonly segment: Term
}

const keyOf = ({ className, segment }: Place) => JSON.stringify([className, segment])
const bytesOf = (bytes: number) => formatQuantity(quantityOf(bytes, 'BinarySI'))

function placeOf(key: string): Place {
  const [className, segment] = JSON.parse(key) as [string, Term]
  return { className, segment }
}

type Reachable = Parameters<typeof volumeReaches>[0]

export interface CapacityPublisher {
  readonly sync: Reconciler
  /** The volume was created or deleted: its places are asked again. Undefined: the driver has refused one of the class. */
  refresh(volume: Reachable | undefined, className: string): void
}

/** @param topology undefined: the driver's volumes are reached from everywhere */
export function createCapacity(context: CsiContext, name: string, topology: ClusterTopology | undefined): CapacityPublisher {
  const { client, clock, connection, driver, informers, options } = context
  const { namespace = '', pollMs = 0, isForImmediate = false } = options.capacity ?? {}
  const classes = informers.of(storageClasses)
  const known = informers.of(csiStorageCapacities)
  const capacities = readYourWrites(client.of(csiStorageCapacities), known, clock)
  const ourLabels = { [driverLabel]: driver.name, [managerLabel]: manager }
  const isOurs = ({ metadata }: Capacity) => Object.entries(ourLabels).every(([key, value]) => ownValue(metadata.labels, key) === value)
  const segments = () => (topology ? topologySegments(driver.name, topology) : [[]])
  const isWanted = (one: Frozen<StorageClass> | undefined) =>
    one?.provisioner === driver.name && (isForImmediate || one.volumeBindingMode === 'WaitForFirstConsumer')

  const reconcile = async (key: string, signal: AbortSignal): Promise<undefined> => {
    const place = placeOf(key)
    const [first, ...others] = known.store.list().filter((one) => isOurs(one) && keyOf(placeOfObject(one)) === key)
    const storageClass = classes.store.get(place.className)
    const isThere = isWanted(storageClass) && segments().some((segment) => keyOf({ ...place, segment }) === key)
    for (const { metadata } of isThere || !first ? others : [first, ...others])
      await unlessGone(() => capacities.delete({ namespace: metadata.namespace, name: metadata.name ?? '' }, { signal }))
    if (!isThere) return
    const found = await ask(place, storageClass, signal)
    const nodeTopology = place.segment.length > 0 ? { matchLabels: Object.fromEntries(place.segment) } : {}
    if (!first) {
      const metadata = { generateName: 'csisc-', namespace, labels: ourLabels }
      await capacities.create({ metadata, storageClassName: place.className, nodeTopology, ...found }, { signal })
    } else if (!semanticEqual({ capacity: first.capacity, maximumVolumeSize: first.maximumVolumeSize }, found)) {
      const patch = { ...found, maximumVolumeSize: found.maximumVolumeSize ?? null }
      await capacities.patch({ namespace: first.metadata.namespace, name: first.metadata.name ?? '' }, 'merge', patch, { signal })
    }
  }

  async function ask({ segment }: Place, storageClass: Frozen<StorageClass> | undefined, signal: AbortSignal) {
    const request = {
      parameters: storageClass?.parameters ?? {},
      ...(segment.length > 0 ? { accessibleTopology: { segments: Object.fromEntries(segment) } } : {}),
    }
    const { availableCapacity, maximumVolumeSize } = await connection.call('getCapacity', request, options.timeoutMs ?? defaultTimeoutMs, signal)
    return { capacity: bytesOf(availableCapacity), maximumVolumeSize: maximumVolumeSize ? bytesOf(maximumVolumeSize.value) : undefined }
  }

  const sync = createReconciler(context, { name, queueName: 'csistoragecapacity', workers: 1, rateLimiter: retryLimiter(context), reconcile })
  const add = (matters: (place: Place) => boolean) => {
    const found = segments()
    const places = classes.store.list().filter(isWanted)
    for (const { metadata } of places)
      for (const place of found.map((segment) => ({ className: metadata.name ?? '', segment }))) if (matters(place)) sync.queue.add(keyOf(place))
  }
  const addAll = () => {
    add(() => true)
    for (const one of known.store.list().filter(isOurs)) sync.queue.add(keyOf(placeOfObject(one)))
  }
  sync.watch(classes, { onAdd: addAll, onUpdate: addAll, onDelete: addAll })
  const addOne = (one: Capacity) => isOurs(one) && sync.queue.add(keyOf(placeOfObject(one)))
  sync.watch(known, { onAdd: addOne, onUpdate: (_, now) => addOne(now), onDelete: addOne })
  if (topology) {
    sync.watch(informers.of(csiNodes), { onAdd: addAll, onUpdate: addAll, onDelete: addAll })
    const onUpdate = (old: Labelled, now: Labelled) => semanticEqual(old.metadata.labels ?? {}, now.metadata.labels ?? {}) || addAll()
    sync.watch(informers.of(nodes), { onAdd: addAll, onUpdate: (old, now) => void onUpdate(old, now), onDelete: addAll })
  }
  sync.also((signal) => everyPeriod(context, name, pollMs, async () => addAll(), signal))
  const refresh = (volume: Reachable | undefined, className: string) => {
    // Other classes have the same disk.
    if (volume?.spec.nodeAffinity) add(({ segment }) => volumeReaches(volume, nodeIn(segment)))
    else add((place) => place.className === className)
  }
  return { sync, refresh }
}

const defaultTimeoutMs = 10_000

/** A node of the topology. */
const nodeIn = (segment: Term) => ({ metadata: { labels: Object.fromEntries(segment) } }) as Frozen<Node>

type Labelled = Frozen<{ metadata: { labels?: Record<string, string> | undefined } }>

/** The labels of the object's topology, sorted as those of a segment. */
function placeOfObject({ storageClassName, nodeTopology }: Capacity): Place {
  const segment = Object.entries(nodeTopology?.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  return { className: storageClassName, segment }
}
