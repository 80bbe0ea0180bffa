/** The lab on the controller pattern (L4). */
import { deployments, events, pods, replicaSets } from '#client/builtIn'
import type { Lab } from './lab.ts'
import type { Look } from './look.ts'
import { passes } from './outcome.ts'
import { create } from './workloads.ts'

/** Notes the uid of the first Deployment, which the second task replaces. */
const first = 'first-deployment'

async function start(look: Look): Promise<void> {
  await create.deployment(look, 'web', 3)
  await look.note({ [first]: (await look.get(deployments, 'web'))?.metadata.uid ?? '' })
}

/** The scheduler and the kubelet report about each pod, and what they reported outlives it. */
async function hasEvents(look: Look, pod: string): Promise<boolean> {
  return (await look.list(events)).some(({ involvedObject: { kind, name } }) => kind === 'Pod' && name === pod)
}

export const controllers: Lab = {
  number: 4,
  title: 'The controller pattern',
  about: 'A controller compares what should be with what is, and does not ask how the difference came about.',
  start,
  tasks: [
    {
      text: 'Scale the Deployment "web" to 4 by its subresource, then delete one of its pods: the ReplicaSet controller replaces it. Note the name of the pod that you delete with the annotation "deleted" of the namespace lab-04.',
      hint: `kubectl rollout status deployment web -n lab-04 --timeout=60s
kubectl scale deployment web -n lab-04 --replicas=4
kubectl annotate namespace lab-04 --overwrite deleted=$(kubectl get pods -n lab-04 -l app=web -o jsonpath='{.items[0].metadata.name}')
kubectl delete pod -n lab-04 $(kubectl get namespace lab-04 -o jsonpath='{.metadata.annotations.deleted}')
kubectl rollout status deployment web -n lab-04 --timeout=60s`,
      check: async (look) => {
        const { deleted } = await look.notes()
        const there = (await look.list(pods, 'app=web')).filter(({ metadata }) => !metadata.deletionTimestamp)
        if (deleted === undefined) return passes(false, `${there.length} pods, and no annotation "deleted"`)
        const isGone = there.every(({ metadata }) => metadata.name !== deleted)
        const existed = /^web-[a-z0-9]+-[a-z0-9]+$/.test(deleted) && (await hasEvents(look, deleted))
        const found = !existed ? 'is no pod that web had: there are no events about it' : isGone ? 'is not among them' : 'is still among them'
        return passes(existed && isGone && there.length === 4, `${there.length} pods, ${deleted} ${found}`)
      },
    },
    {
      text: 'Delete the Deployment "web" and leave its ReplicaSet an orphan (--cascade=orphan). Then create a Deployment "web" with the same template and 4 replicas again: it adopts the ReplicaSet. Note the uid of the orphan with the annotation "orphan".',
      hint: `kubectl get deployment web -n lab-04 -o yaml > /tmp/skiff-lab-04.yaml
kubectl delete deployment web -n lab-04 --cascade=orphan
kubectl annotate namespace lab-04 --overwrite orphan=$(kubectl get replicasets -n lab-04 -l app=web -o jsonpath='{.items[0].metadata.uid}')
sed -i -e '/^  resourceVersion:/d' -e '/^  uid:/d' /tmp/skiff-lab-04.yaml
kubectl create -f /tmp/skiff-lab-04.yaml
rm /tmp/skiff-lab-04.yaml
kubectl rollout status deployment web -n lab-04 --timeout=60s`,
      check: async (look) => {
        const { orphan } = await look.notes()
        const deployment = await look.get(deployments, 'web')
        const sets = await look.list(replicaSets, 'app=web')
        const adopted = sets.find(({ metadata }) => metadata.uid === orphan)
        if (!deployment || !adopted)
          return passes(false, deployment ? 'no ReplicaSet of web has the uid in the annotation "orphan"' : 'there is no Deployment web')
        const owner = adopted.metadata.ownerReferences?.[0]?.uid
        const isAdopted = owner !== undefined && owner === deployment.metadata.uid && owner !== (await look.notes())[first]
        return passes(isAdopted, owner === undefined ? 'the ReplicaSet has no owner' : `the ReplicaSet belongs to the Deployment with uid ${owner}`)
      },
    },
  ],
}
