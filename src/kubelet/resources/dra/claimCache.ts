/**
 * The resource claims that pods of this node use (L3, pure), and their checkpoint `dra_manager_state` in upstream's format.
 * Upstream: kubelet/cm/dra/claiminfo.go, state/checkpoint.go, state/state_checkpoint.go (v1.36).
 */
import { crc32 } from 'node:zlib'

export interface PreparedDevice {
  readonly poolName: string
  readonly deviceName: string
  readonly shareId: string | undefined
  /** Empty: for every request of the claim. */
  readonly requestNames: readonly string[]
  readonly cdiDeviceIds: readonly string[]
}

export interface ClaimInfo {
  readonly uid: string
  readonly name: string
  readonly namespace: string
  readonly podUids: Set<string>
  /** Driver → the devices that it has prepared. */
  readonly drivers: Map<string, PreparedDevice[]>
  /** Not kept over restarts: preparing again is idempotent. */
  prepared: boolean
}

export class ClaimCache {
  readonly #claims = new Map<string, ClaimInfo>()

  get(namespace: string, name: string): ClaimInfo | undefined {
    return this.#claims.get(`${namespace}/${name}`)
  }

  add(claim: ClaimInfo): void {
    this.#claims.set(`${claim.namespace}/${claim.name}`, claim)
  }

  delete(namespace: string, name: string): void {
    this.#claims.delete(`${namespace}/${name}`)
  }

  all(): ClaimInfo[] {
    return [...this.#claims.values()]
  }

  of(podUid: string): ClaimInfo[] {
    return this.all().filter(({ podUids }) => podUids.has(podUid))
  }
}

/** `request` may name a subrequest: devices are named by either. */
export function cdiDevicesOf({ drivers }: ClaimInfo, request: string | undefined): string[] {
  const isMeant = ({ requestNames }: PreparedDevice) =>
    !request || requestNames.length === 0 || requestNames.some((name) => name === request || name.startsWith(`${request}/`))
  return [...drivers.values()].flat().flatMap((device) => (isMeant(device) ? device.cdiDeviceIds : []))
}

interface DeviceState {
  readonly PoolName: string
  readonly DeviceName: string
  readonly ShareID?: string | null
  readonly RequestNames: readonly string[] | null
  readonly CDIDeviceIDs: readonly string[] | null
}

interface ClaimState {
  readonly ClaimUID: string
  readonly ClaimName: string
  readonly Namespace: string
  readonly PodUIDs: Readonly<Record<string, object>> | null
  readonly DriverState: Readonly<Record<string, { readonly Devices: readonly DeviceState[] | null }>> | null
}

const kind = 'DRACheckpoint'
const group = 'checkpoint.dra.kubelet.k8s.io'

/** The checkpoint's text. */
export function renderClaims(cache: ClaimCache): string {
  const device = ({ poolName, deviceName, shareId, requestNames, cdiDeviceIds }: PreparedDevice): DeviceState => ({
    PoolName: poolName,
    DeviceName: deviceName,
    ShareID: shareId ?? null,
    RequestNames: requestNames,
    CDIDeviceIDs: cdiDeviceIds,
  })
  const Entries = cache.all().map(
    ({ uid, name, namespace, podUids, drivers }): ClaimState => ({
      ClaimUID: uid,
      ClaimName: name,
      Namespace: namespace,
      PodUIDs: Object.fromEntries([...podUids].sort().map((podUid) => [podUid, {}])),
      DriverState: Object.fromEntries([...drivers].map(([driver, devices]) => [driver, { Devices: devices.map(device) }])),
    }),
  )
  const Data = JSON.stringify({ kind, apiVersion: `${group}/v1`, Entries })
  return JSON.stringify({ Data, Checksum: crc32(Data) })
}

/** @throws Error for a file that is damaged or of another version. */
export function parseClaims(text: string): ClaimCache {
  const { Data, Checksum } = JSON.parse(text) as { Data: string; Checksum: number }
  if (crc32(Data) !== Checksum) throw new Error('checkpoint is corrupted')
  const data = JSON.parse(Data) as { kind: string; apiVersion: string; Entries: readonly ClaimState[] | null }
  if (data.kind !== kind || !data.apiVersion.startsWith(`${group}/`))
    throw new Error(`incorrect checkpoint kind "${data.kind}" or version "${data.apiVersion}"`)
  const cache = new ClaimCache()
  for (const { ClaimUID, ClaimName, Namespace, PodUIDs, DriverState } of data.Entries ?? []) {
    const drivers = Object.entries(DriverState ?? {}).map(([driver, { Devices }]): [string, PreparedDevice[]] => [
      driver,
      (Devices ?? []).map((device) => ({
        poolName: device.PoolName,
        deviceName: device.DeviceName,
        shareId: device.ShareID ?? undefined,
        requestNames: device.RequestNames ?? [],
        cdiDeviceIds: device.CDIDeviceIDs ?? [],
      })),
    ])
    cache.add({
      uid: ClaimUID,
      name: ClaimName,
      namespace: Namespace,
      podUids: new Set(Object.keys(PodUIDs ?? {})),
      drivers: new Map(drivers),
      prepared: false,
    })
  }
  return cache
}
