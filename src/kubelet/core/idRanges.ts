/**
 * The ranges of user ids that pods with `hostUsers: false` have on the node (L3, pure): one each, none twice.
 * Upstream: kubelet/userns/userns_manager.go, kubelet_pods.go getKubeletMappings (v1.36).
 */
import type { UserNamespace } from '#grpc/criTypes'
import type { FrozenPod } from './containers.ts'

export interface UserNamespaces {
  /** Gives the pod its range, if it is to have one, and keeps it over restarts. @throws when the runtime has no user namespaces, or no range is left. */
  prepare(pod: FrozenPod, runtimeHandler: string): Promise<void>
  /** The user namespace in the request to the runtime: the node's users, or the pod's range. */
  of(pod: FrozenPod): UserNamespace
  /** Of pods that are gone. */
  releaseOthers(isKnown: (podUid: string) => boolean): Promise<void>
}

export interface IdRange {
  readonly first: number
  readonly length: number
}

export const unitLength = 65_536
const endOfIds = 2 ** 32
export const nodeUsers: UserNamespace = { mode: 'NODE', uids: [], gids: [] }

/** Takes equal pieces of a range, the lowest that is free first. */
export class IdRanges {
  private readonly taken = new Map<string, number>()
  private readonly count: number

  private readonly all: IdRange
  private readonly length: number

  constructor(all: IdRange, length: number) {
    this.all = all
    this.length = length
    this.count = all.length / length
  }

  get(owner: string): IdRange | undefined {
    const index = this.taken.get(owner)
    return index === undefined ? undefined : { first: this.all.first + index * this.length, length: this.length }
  }

  /** @throws when all are taken */
  allocate(owner: string): IdRange {
    const used = new Set(this.taken.values())
    let index = 0
    while (used.has(index)) index++
    if (index >= this.count) throw new Error('could not find an empty slot to allocate a user namespace')
    this.taken.set(owner, index)
    return { first: this.all.first + index * this.length, length: this.length }
  }

  /** What an owner has from before. @throws when it is none of our pieces, or another's */
  record(owner: string, { first, length }: IdRange): void {
    if (length !== this.length) throw new Error(`wrong user namespace length ${length}`)
    const index = (first - this.all.first) / this.length
    if (!Number.isInteger(index)) throw new Error(`wrong user namespace offset specified ${first}`)
    if (index < 0 || index >= this.count) throw new Error(`id ${first} is out of range`)
    if ([...this.taken].some(([other, theirs]) => theirs === index && other !== owner)) throw new Error(`range picked for pod "${owner}" already taken`)
    this.taken.set(owner, index)
  }

  release(owner: string): void {
    this.taken.delete(owner)
  }

  owners(): readonly string[] {
    return [...this.taken.keys()]
  }
}

/** @throws with upstream's text when the pods' ranges do not fit */
export function checkedRange(all: IdRange, length: number, maxPods: number): IdRange {
  const refuseIf = (fault: boolean, message: string) => {
    if (fault) throw new Error(message)
  }
  refuseIf(length % unitLength !== 0, `kubelet user namespace length ${length} is not a multiple of ${unitLength}`)
  refuseIf(all.first % length !== 0, `kubelet user assigned ID ${all.first} is not a multiple of ${length}`)
  refuseIf(all.first < length, `kubelet user assigned ID ${all.first} must be greater or equal to ${length}`)
  refuseIf(all.length % length !== 0, `kubelet user assigned IDs length ${all.length} is not a multiple of ${length}`)
  refuseIf(all.length / length < maxPods, `kubelet user assigned IDs are not enough to support ${maxPods} pods`)
  return all
}

/**
 * The ids that the node's administrator has set aside for the user "kubelet", else all but the first piece.
 * @param subuid the text of /etc/subuid  @param subgid of /etc/subgid  @throws when the two differ, or there are several
 */
export function kubeletIds(subuid: string, subgid: string, length: number): IdRange {
  const users = subordinateIds(subuid)
  const groups = subordinateIds(subgid)
  if (users.length === 0 && groups.length === 0) return { first: length, length: endOfIds - length }
  const [range, ...more] = users
  if (!range || more.length > 0 || groups.length !== 1)
    throw new Error('expected one mapping of ids for user "kubelet" in /etc/subuid, and the same one in /etc/subgid')
  if (range.first !== groups[0]?.first || range.length !== groups[0].length) throw new Error('mismatched subuids and subgids for user "kubelet"')
  return range
}

function subordinateIds(text: string): IdRange[] {
  return text.split('\n').flatMap((line) => {
    const [user, first, length] = line.split(':')
    return user === 'kubelet' ? [{ first: Number(first), length: Number(length) }] : []
  })
}

interface MappingsFile {
  readonly uidMappings: readonly { readonly hostId: number; readonly containerId: number; readonly length: number }[]
  readonly gidMappings: MappingsFile['uidMappings']
}

/** The content of the file that records a pod's range. */
export function mappingsOf({ first, length }: IdRange): MappingsFile {
  const mappings = [{ hostId: first, containerId: 0, length }]
  return { uidMappings: mappings, gidMappings: mappings }
}

/** @throws when it is not what a kubelet has written */
export function rangeOf(text: string): IdRange {
  const { uidMappings, gidMappings } = JSON.parse(text) as Partial<MappingsFile>
  const [own, ...more] = uidMappings ?? []
  if (!own || more.length > 0) throw new Error('invalid user namespace configuration: no more than one mapping allowed.')
  if (JSON.stringify(uidMappings) !== JSON.stringify(gidMappings))
    throw new Error('invalid user namespace configuration: GID and UID mapping should be identical')
  if (own.containerId !== 0) throw new Error('invalid user namespace configuration: UID 0 must be mapped')
  return { first: own.hostId, length: own.length }
}
