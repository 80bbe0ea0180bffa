/**
 * Finds devices for a pod's resource claims together with the node (L3), promises them while the pod is on its way, and writes them into the claims
 * before it is bound. Upstream: plugins/dynamicresources (v1.36).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { AllocationResult, DeviceClass, ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import { nodeSelectorMatches } from '#api/helpers/nodes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { deviceClasses, resourceSlices } from '#client/builtIn'
import { type CycleState, type StateData, stateKey } from '../../framework/cycleState.ts'
import type { Handle } from '../../framework/handle.ts'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import { definePlugin, normalizeByHighest } from '../../framework/plugin.ts'
import type { PluginArgs } from '../../framework/pluginArgs.ts'
import type { PodInfo } from '../../framework/podInfo.ts'
import { type Refusal, unresolvable, unschedulable } from '../../framework/status.ts'
import type { ClaimSolution, Leave } from './allocation.ts'
import { allocationOf } from './allocationResult.ts'
import { createAllocation } from './allocator.ts'
import { bindingReadiness, hasBindingConditions } from './bindingConditions.ts'
import { ClaimTracker, canBeReserved, claimsOf, isReservedFor } from './claimTracker.ts'
import { bindClaim, deallocateClaim, releaseClaim } from './claimWrites.ts'
import { DeviceSelectors } from './deviceSelectors.ts'
import { deleteClaim, type ExtendedClaim, type ExtendedVariant, extendedClaimOf, makeExtendedClaim, variantFor, type WriteDeps } from './extendedClaim.ts'
import { ExtendedResourceClasses } from './extendedResources.ts'
import { PoolIndex } from './pools.ts'
import { requeueEvents } from './requeue.ts'
import type { Question, SlowOutcome } from './searchAnswers.ts'
import { SlowSearches, slice } from './slowSearches.ts'
import { areFree, areUnchanged } from './verification.ts'

const name = 'DynamicResources'
const maxAlternatives = 8
const bindingPollMs = 5000
/** What a cycle searches itself, on all nodes; a longer search continues between the cycles. */
const searchPerCycleMs = 50

type Claim = Frozen<ResourceClaim>

/** What a cycle knows of the pod's claims. */
interface ClaimState extends StateData {
  /** Replaced as they are written. */
  readonly claims: Claim[]
  readonly toAllocate: readonly Claim[]
  /** Claims with devices that cannot be used any more. */
  readonly failed: ReadonlySet<Claim>
  /** Claims with devices that some node cannot reach. */
  readonly unavailable: Set<Claim>
  /** Present when some class gives what the pod asks for as an extended resource. */
  readonly extended: ExtendedClaim | undefined
  /** Answers by node: the same whatever pods are there. */
  readonly byNode: Map<string, Refusal | NodeAnswer>
  /** True when the cycle has used up its search time. */
  slice: Leave | undefined
  /** Set by reserve, by the claims' uids. */
  readonly allocations: Map<string, AllocationResult>
}

/** Devices that a node has for the pod. */
interface NodeAnswer {
  readonly solutions: readonly ClaimSolution[]
  readonly extended: ExtendedVariant | undefined
}

const claimState = stateKey<ClaimState>(name)

const notAvailable = unresolvable('resourceclaim not available on the node')
const stillSearching = unresolvable('still searching for devices of the resource claims')
const cannotAllocate = unresolvable('cannot allocate all claims')

export const dynamicResources = definePlugin(name, (args, handle) => {
  const tracker = new ClaimTracker(handle)
  const classes = handle.lister(deviceClasses)
  const extendedClasses = new ExtendedResourceClasses(handle)
  const finder = createFinder({ args, handle, tracker, extendedClasses, classOf: (className) => classes.get({ name: className }) })
  const created = handle.metrics.counter({
    name: 'scheduler_resourceclaim_creates_total',
    help: 'Claims made by the scheduler, by status.',
    labels: ['status'],
  })
  const bindDeps: BindDeps = { handle, tracker, args, creates: (status) => created.inc({ status }) }
  return {
    requeueOn: requeueEvents(tracker, extendedClasses),
    batchSign: ({ pod }) => (pod.spec.resourceClaims?.length ? undefined : ''),
    preEnqueue: (pod) => {
      const found = claimsOf(pod, tracker)
      return 'reason' in found ? unresolvable(found.reason) : undefined
    },
    preFilter: (state, info) => {
      const { pod } = info
      const found = claimsOf(pod, tracker)
      if ('reason' in found) return unresolvable(found.reason)
      const extended = extendedClaimOf(info, extendedClasses, tracker, handle.random)
      if (found.claims.length === 0 && !extended) return 'skip'
      const inUse = found.claims.some((claim) => claim.status?.allocation && !canBeReserved(claim) && !isReservedFor(claim, pod))
      if (inUse) return unresolvable('resourceclaim in use')
      const toAllocate = found.claims.filter(({ status }) => !status?.allocation)
      for (const claim of toAllocate) {
        if (tracker.isPromised(claim)) return unresolvable(`resource claim ${keyOf(claim)} is in the process of being allocated`)
        const missing = missingClass(claim, (className) => classes.get({ name: className }) !== undefined)
        if (missing) return unresolvable(missing)
      }
      const isFailed = (claim: Claim) => hasBindingConditions(claim) && bindingReadiness(claim, handle.clock.now(), args.bindingTimeoutMs).state === 'failed'
      state.write(claimState, {
        claims: [...found.claims],
        toAllocate,
        failed: new Set(found.claims.filter(isFailed)),
        unavailable: new Set<Claim>(),
        extended,
        byNode: new Map(),
        slice: undefined,
        allocations: new Map(),
      })
      return undefined
    },
    filter: (state, { pod }, node) => {
      const known = state.read(claimState)
      const answer = known ? finder(known, pod, node) : undefined
      return answer && 'code' in answer ? answer : undefined
    },
    postFilter: async (state, pod) => ({ refusal: unschedulable(await freeSomeClaim(handle, state.read(claimState), pod)) }),
    preScore: (state) => (state.read(claimState)?.toAllocate.some(isPrioritized) ? undefined : 'skip'),
    score: (state, _pod, { name: node }) => rankOf(state.read(claimState)?.byNode.get(node)),
    normalize: (scores) => normalizeByHighest(scores, false),
    reserve: (state, _pod, nodeName) => {
      const known = state.read(claimState)
      if (!known || (known.toAllocate.length === 0 && !known.extended)) return undefined
      const answer = known.byNode.get(nodeName)
      if (!answer || 'code' in answer) throw new Error('claim allocation not found for node')
      if (known.extended) known.extended.chosen = answer.extended
      // Extenders were asked since the devices were found, or the search took longer than the cycle.
      if (!areFree(answer.solutions, tracker.inUse)) throw new Error(`node ${nodeName}: devices of the claims were allocated to other claims meanwhile`)
      for (const solution of answer.solutions) {
        const allocation = allocationOf(solution, nodeName, handle.random)
        known.allocations.set(solution.claim.metadata.uid ?? '', allocation)
        tracker.promise(solution.claim, allocation)
      }
      return undefined
    },
    unreserve: (state, { pod }) => {
      const { claims = [], extended } = state.read(claimState) ?? {}
      for (const claim of claims) {
        tracker.takeBack(claim)
        if (claim.status?.allocation && isReservedFor(claim, pod)) handle.background(releaseClaim(handle, claim, pod))
      }
      if (extended) tracker.takeBack(extended.temporary)
      if (extended?.made) handle.background(deleteClaim(handle, extended.made))
    },
    preBindPreFlight: (state) => (state.read(claimState) ? undefined : 'skip'),
    preBind: async (state, pod, nodeName, signal) => {
      await bindClaims(bindDeps, state, pod, nodeName, signal)
      return undefined
    },
  }
})

type Finder = (known: ClaimState, pod: Frozen<Pod>, node: NodeInfo) => Refusal | NodeAnswer

interface FinderDeps {
  readonly args: PluginArgs['DynamicResources']
  readonly handle: Handle
  readonly tracker: ClaimTracker
  readonly extendedClasses: ExtendedResourceClasses
  readonly classOf: Parameters<typeof createAllocation>[0]['classOf']
}

/** Answers from the cached slices and classes; slices are sorted again only after one has changed. */
function createFinder({ args, handle, tracker, extendedClasses, classOf }: FinderDeps): Finder {
  const selectors = new DeviceSelectors(() => handle.clock.monotonicMs())
  let index: PoolIndex | undefined
  const changed = () => {
    index = undefined
  }
  const slices = handle.watch<ResourceSlice>(resourceSlices, { onAdd: changed, onUpdate: changed, onDelete: changed })
  handle.watch<DeviceClass>(deviceClasses, { onAdd: changed, onUpdate: changed, onDelete: changed })
  const current = () => {
    index ??= new PoolIndex(slices.values())
    return index
  }
  const allocatorDeps = (node: Frozen<Node>) => ({ pools: current().poolsOf(node), node, selectors, classOf })
  const slowSearches = new SlowSearches({
    handle,
    timeoutMs: args.filterTimeoutMs,
    begin: ({ node, claims }) => ({
      basis: { index: current(), releases: tracker.inUse.releases },
      allocation: createAllocation({ ...allocatorDeps(node), inUse: tracker.inUse.snapshot() }, claims),
    }),
    stillHolds: {
      basis: (basis) => basis.index === index && basis.releases === tracker.inUse.releases,
      solution: (solution, node) => areUnchanged(solution, allocatorDeps(node)) && areFree(solution, tracker.inUse),
    },
  })
  return (known, pod, node) => {
    const before = known.byNode.get(node.name)
    if (before) return before
    const answer = answerFor(known, pod, node)
    known.byNode.set(node.name, answer)
    return answer
  }

  function answerFor(known: ClaimState, pod: Frozen<Pod>, node: NodeInfo): Refusal | NodeAnswer {
    const variant = known.extended && variantFor(known.extended, node, extendedClasses)
    if (variant && 'code' in variant) return variant
    const unavailable = known.claims.filter((claim) => known.failed.has(claim) || !isAvailableOn(claim, node.node))
    const wanted = variant ? [...known.toAllocate, variant.claim] : known.toAllocate
    const found = wanted.length === 0 ? [] : search(known, pod, { node: node.node, claims: wanted })
    if ('code' in found) return found
    for (const claim of unavailable) known.unavailable.add(claim)
    return unavailable.length > 0 ? notAvailable : { solutions: found, extended: variant }
  }

  function search(known: ClaimState, pod: Frozen<Pod>, question: Question): Refusal | readonly ClaimSolution[] {
    const { node, claims } = question
    const earlier = slowSearches.answer(pod, question)
    if (earlier === 'searching') return stillSearching
    if (earlier) return answerOf(earlier, node)
    known.slice ??= slice(() => handle.clock.monotonicMs(), searchPerCycleMs)
    const outcome = known.slice.isOver() ? undefined : createAllocation({ ...allocatorDeps(node), inUse: tracker.inUse }, claims).run(known.slice)
    if (outcome) return answerOf(outcome, node)
    slowSearches.add({ pod, ...question })
    return stillSearching
  }
}

/** @throws Error after a timeout, as upstream: the pod is retried after a back-off, whatever happens in the cluster */
function answerOf(outcome: SlowOutcome, node: Frozen<Node>): Refusal | readonly ClaimSolution[] {
  if ('error' in outcome) throw outcome.error
  if ('solution' in outcome) return outcome.solution
  if (outcome.failed === 'timeout') throw new Error(`node ${node.metadata.name}: timed out trying to allocate devices`)
  return outcome.failed === 'invalidPools' ? unresolvable('invalid resource pools were encountered') : cannotAllocate
}

function isAvailableOn({ status }: Claim, node: Frozen<Node>): boolean {
  const selector = status?.allocation?.nodeSelector
  return !selector || nodeSelectorMatches(selector, node)
}

function missingClass({ spec }: Claim, exists: (name: string) => boolean): string | undefined {
  for (const { name: request, exactly, firstAvailable } of spec.devices?.requests ?? []) {
    const variants = exactly ? [{ name: request, deviceClassName: exactly.deviceClassName }] : (firstAvailable ?? [])
    if (variants.length === 0) return `request ${request}: unsupported request type`
    const missing = variants.find(({ deviceClassName }) => !exists(deviceClassName))
    if (missing) return `request ${missing.name}: device class ${missing.deviceClassName} does not exist`
  }
  return undefined
}

function isPrioritized({ spec }: Claim): boolean {
  return spec.devices?.requests?.some(({ firstAvailable }) => firstAvailable && firstAvailable.length > 0) === true
}

/** The more preferred the alternatives that the node can give, the better. */
function rankOf(answer: Refusal | NodeAnswer | undefined): number {
  if (!answer || 'code' in answer) return 0
  let rank = 0
  for (const { claim, chosen } of answer.solutions) {
    const taken = new Set(chosen.map(({ fullName }) => fullName))
    for (const { name: request, firstAvailable = [] } of claim.spec.devices?.requests ?? [])
      firstAvailable.forEach((one, index) => {
        if (taken.has(`${request}/${one.name}`)) rank += maxAlternatives - index
      })
  }
  return rank
}

/** @returns the status of PostFilter */
async function freeSomeClaim(handle: Handle, known: ClaimState | undefined, { pod }: PodInfo): Promise<string> {
  if (!known) return 'no new claims to deallocate'
  const isIdle = ({ status }: Claim) => (status?.reservedFor ?? []).every(({ uid }) => uid === pod.metadata.uid)
  const idle = [...known.unavailable].filter(isIdle)
  const claim = idle[handle.random.int(Math.max(1, idle.length))]
  const stale = known.extended?.stale
  if (!claim && stale) {
    await deleteClaim(handle, stale)
    return 'deletion of ResourceClaim completed'
  }
  if (!claim) return 'still not schedulable'
  await deallocateClaim(handle, claim)
  return 'deallocation of ResourceClaim completed'
}

interface BindDeps extends WriteDeps {
  readonly args: PluginArgs['DynamicResources']
}

async function bindClaims(deps: BindDeps, state: CycleState, { pod }: PodInfo, nodeName: string, signal: AbortSignal): Promise<void> {
  const { handle, tracker } = deps
  const known = state.read(claimState)
  if (!known) return
  const { claims, allocations, extended } = known
  for (const [index, claim] of claims.entries()) {
    if (isReservedFor(claim, pod)) continue
    const written = await bindClaim(handle, claim, allocations.get(claim.metadata.uid ?? ''), pod, signal)
    tracker.written(written)
    claims[index] = written
  }
  const allocation = extended?.chosen && allocations.get(extended.temporary.metadata.uid ?? '')
  if (extended && allocation) await whenReady(deps, [...claims, await makeExtendedClaim(deps, extended, allocation, signal)], pod, nodeName, signal)
  else await whenReady(deps, claims, pod, nodeName, signal)
}

/** Waits for devices that have to be attached first. */
async function whenReady(
  { handle, tracker, args }: BindDeps,
  claims: readonly Claim[],
  pod: Frozen<Pod>,
  nodeName: string,
  signal: AbortSignal,
): Promise<void> {
  if (!claims.some(hasBindingConditions)) return
  const note = `waiting for binding conditions for device on node ${nodeName}`
  handle.events.event({ regarding: pod, type: 'Normal', reason: 'BindingConditionsPending', action: 'Scheduling', note })
  const deadlineMs = handle.clock.monotonicMs() + args.bindingTimeoutMs
  for (;;) {
    const waiting = claims.filter((claim) => {
      const now = tracker.get(claim.metadata.namespace, claim.metadata.name ?? '')
      if (!now) throw new Error(`resourceclaim.resource.k8s.io "${claim.metadata.name}" not found`)
      const readiness = bindingReadiness(now, handle.clock.now(), args.bindingTimeoutMs)
      if (readiness.state === 'failed') throw new Error(readiness.reason)
      return readiness.state === 'waiting'
    })
    if (waiting.length === 0) return
    if (handle.clock.monotonicMs() >= deadlineMs) throw new Error('device binding timeout')
    await handle.clock.sleep(bindingPollMs, signal)
  }
}
