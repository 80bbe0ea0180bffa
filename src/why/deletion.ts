/** Why an object with a deletionTimestamp stays (L2): its finalizers and who removes them, or for a pod its kubelet. */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { isNodeReady } from '#api/helpers/nodes'
import { podClaimNames } from '#api/helpers/objectReferences'
import { isPodTerminal } from '#api/helpers/pods'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { type Cause, conditionText, kubectl, skiffWhy } from './answer.ts'
import { eventText, type View } from './view.ts'

interface Keeper {
  readonly finalizer: string | RegExp
  causes(object: Frozen<KubeObject>, finalizer: string, view: View): Promise<Omit<Cause, 'evidence'>> | Omit<Cause, 'evidence'>
}

const keepers: readonly Keeper[] = [
  { finalizer: 'kubernetes.io/pvc-protection', causes: (claim, _, view) => claimUsers(claim, view) },
  {
    finalizer: 'kubernetes.io/pv-protection',
    causes: (volume) => {
      const { claimRef } = (volume as { spec?: { claimRef?: { namespace?: string; name?: string } } }).spec ?? {}
      return {
        text: `the claim ${claimRef?.namespace}/${claimRef?.name} is bound to it: the volume goes after the claim`,
        next: kubectl(claimRef?.namespace, 'get', 'pvc', claimRef?.name ?? ''),
      }
    },
  },
  { finalizer: 'foregroundDeletion', causes: (owner, _, view) => dependants(owner, view) },
  {
    finalizer: 'orphan',
    causes: () => ({ text: 'the garbage collector removes the references to it first: check that the controllers run', next: 'skiff status' }),
  },
  {
    finalizer: 'service.kubernetes.io/load-balancer-cleanup',
    causes: ({ metadata: { namespace, name = '' } }) => ({
      text: 'its load balancer has not been removed by the controller of load balancers',
      next: kubectl(namespace, 'describe', 'service', name),
    }),
  },
  {
    finalizer: 'batch.kubernetes.io/job-tracking',
    causes: () => ({ text: 'the Job controller has not counted it yet: check that the controllers run', next: 'skiff status' }),
  },
  {
    finalizer: 'customresourcecleanup.apiextensions.k8s.io',
    causes: ({ metadata: { name = '' }, ...rest }) => {
      const [resource = ''] = name.split('.', 1)
      const condition = findCondition((rest as { status?: { conditions?: { type: string; message?: string }[] } }).status?.conditions, 'Terminating')
      return {
        text: `its custom resources are deleted first${condition?.message ? `: ${condition.message}` : ''}`,
        next: kubectl(undefined, 'get', `${resource}.${name.slice(resource.length + 1)}`, '-A'),
      }
    },
  },
  {
    finalizer: /^external-provisioner\.volume\.kubernetes\.io\/|^external-attacher\/|^snapshot\.storage\.kubernetes\.io\//,
    causes: ({ metadata: { name = '' } }, finalizer) => ({
      text: `the CSI driver's part ${finalizer} has not removed what it made for ${name}: check that the driver runs`,
      next: kubectl(undefined, 'get', 'csidrivers'),
    }),
  },
]

export async function deletionCauses(object: Frozen<KubeObject>, view: View): Promise<readonly Cause[]> {
  const { finalizers = [], deletionTimestamp } = object.metadata
  const causes: Cause[] = []
  for (const finalizer of finalizers) {
    const keeper = keepers.find((one) => (typeof one.finalizer === 'string' ? one.finalizer === finalizer : one.finalizer.test(finalizer)))
    const found = keeper ? await keeper.causes(object, finalizer, view) : unknownKeeper(object, finalizer)
    causes.push({ ...found, evidence: `deletionTimestamp ${deletionTimestamp}, finalizer ${finalizer}` })
  }
  if (causes.length > 0) return causes
  return object.kind === 'Pod' ? [await podCause(object as Frozen<Pod>, view)] : []
}

function unknownKeeper({ kind, metadata: { namespace, name = '' } }: Frozen<KubeObject>, finalizer: string): Omit<Cause, 'evidence'> {
  const [owner = ''] = finalizer.split('/', 1)
  return {
    text: `the controller that owns the finalizer ${finalizer} has not removed it: check that the controller of ${owner} runs; removing it by hand skips its clean-up`,
    next: kubectl(namespace, 'get', kind.toLowerCase(), name, '-o', 'yaml'),
  }
}

async function claimUsers({ metadata: { namespace, name = '' } }: Frozen<KubeObject>, view: View): Promise<Omit<Cause, 'evidence'>> {
  const pods = await view.list<Pod>('pods', namespace)
  // A pod without a node does not keep its claim.
  const using = (pods ?? []).filter((pod) => pod.spec.nodeName && !isPodTerminal(pod) && podClaimNames(pod).includes(name))
  const users = using.map(({ metadata }) => metadata.name ?? '')
  const [first] = users
  return first === undefined
    ? { text: 'no pod that can be seen uses it: the controllers remove the finalizer soon', next: kubectl(namespace, 'describe', 'pvc', name) }
    : { text: `pods use it: ${users.slice(0, 5).join(', ')}; the claim goes after them`, next: kubectl(namespace, 'get', 'pod', first) }
}

const dependantKinds = ['replicasets', 'jobs', 'pods'] as const

async function dependants({ metadata: { namespace, uid, name = '' } }: Frozen<KubeObject>, view: View): Promise<Omit<Cause, 'evidence'>> {
  for (const resource of dependantKinds) {
    const found = (await view.list<KubeObject>(resource, namespace))?.find(({ metadata }) =>
      metadata.ownerReferences?.some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true),
    )
    if (found) {
      const dependant = found.metadata.name ?? ''
      return { text: `its dependants are deleted first; ${resource} ${dependant} is still there`, next: skiffWhy(resource, dependant, namespace) }
    }
  }
  return { text: 'its dependants are deleted first', next: kubectl(namespace, 'get', 'events', '--field-selector', `involvedObject.name=${name}`) }
}

async function podCause(pod: Frozen<Pod>, view: View): Promise<Cause> {
  const { deletionTimestamp, deletionGracePeriodSeconds, namespace, name = '' } = pod.metadata
  const { nodeName } = pod.spec
  const { object: node, isAbsent } = nodeName ? await view.get<Node>('nodes', undefined, nodeName) : { object: undefined, isAbsent: false }
  const evidence = `deletionTimestamp ${deletionTimestamp}`
  if (isAbsent)
    return { text: `its node ${nodeName} does not exist any more: pod garbage collection deletes it`, evidence, next: kubectl(undefined, 'get', 'nodes') }
  if (node && !isNodeReady(node)) {
    const condition = findCondition(node.status?.conditions, 'Ready')
    return {
      text: `its node ${nodeName} is not ready, so no kubelet confirms that it has stopped`,
      evidence: `${evidence}, node ${nodeName}: ${condition ? conditionText({ ...condition, message: '' }) : 'no condition Ready'}`,
      next: skiffWhy('node', nodeName ?? ''),
    }
  }
  const failure = await view.warningOf(pod, 'FailedKillPod', 'FailedPreStopHook')
  if (failure)
    return { text: `its kubelet cannot stop it: ${failure.message}`, evidence: eventText(failure), next: kubectl(namespace, 'describe', 'pod', name) }
  return {
    text: `its containers have until ${deletionTimestamp} to stop (grace period ${deletionGracePeriodSeconds ?? 0} s)`,
    evidence,
    next: kubectl(namespace, 'get', 'pod', name, '--watch'),
  }
}
