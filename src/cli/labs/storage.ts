/** The lab on storage (L4). */
import { persistentVolumeClaims, statefulSets } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'

const request = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
const set = JSON.stringify({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db' },
  spec: {
    serviceName: 'db',
    replicas: 2,
    selector: { matchLabels: { app: 'db' } },
    template: {
      metadata: { labels: { app: 'db' } },
      spec: { containers: [{ name: 'app', image: 'lab.skiff.dev/app:1', volumeMounts: [{ name: 'data', mountPath: '/data' }] }] },
    },
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: request }],
  },
})

export const storage: Lab = {
  number: 11,
  title: 'Storage',
  about: 'A claim asks, a class says who provides, a volume is what there is; a claim outlives the pods that use it.',
  start: (look) => look.create(persistentVolumeClaims, { metadata: { name: 'data' }, spec: request }),
  tasks: [
    {
      text: 'The claim "data" is Pending: its class waits for the first consumer, since the volume belongs to a node. Run a pod that mounts it.',
      hint: `kubectl run reader -n lab-11 --image=lab.skiff.dev/app:1 --overrides='{"spec":{"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}]}}'
kubectl wait -n lab-11 --for=jsonpath='{.status.phase}'=Bound pvc/data --timeout=60s`,
      check: async (look) => {
        const phase = (await look.get(persistentVolumeClaims, 'data'))?.status?.phase
        return passes(phase === 'Bound', `the claim is ${phase ?? 'gone'}`)
      },
    },
    {
      text: 'What is the name of the volume that was made for the claim? Answer with the annotation "volume" of the namespace lab-11.',
      hint: `kubectl annotate namespace lab-11 --overwrite volume=$(kubectl get pvc data -n lab-11 -o jsonpath='{.spec.volumeName}')`,
      check: async (look) => look.answers('volume', (await look.get(persistentVolumeClaims, 'data'))?.spec?.volumeName),
    },
    {
      text: 'Run a StatefulSet "db" with two replicas and a claim template "data", then scale it to one: the claim of db-1 stays.',
      hint: `echo '${set}' | kubectl apply -n lab-11 -f -
kubectl rollout status statefulset db -n lab-11 --timeout=60s
kubectl scale statefulset db -n lab-11 --replicas=1
kubectl wait -n lab-11 --for=delete pod/db-1 --timeout=60s`,
      check: async (look) => {
        const { spec, status } = (await look.get(statefulSets, 'db')) ?? {}
        const claims = (await look.list(persistentVolumeClaims)).filter(
          ({ metadata, status: state }) => /^data-db-\d$/.test(metadata.name ?? '') && state?.phase === 'Bound',
        )
        const observed = `${status?.readyReplicas ?? 0} replicas ready, claims: ${claims.map(({ metadata }) => metadata.name).join(', ') || 'none'}`
        return passes(spec?.replicas === 1 && status?.readyReplicas === 1 && claims.length === 2, observed)
      },
    },
  ],
}
