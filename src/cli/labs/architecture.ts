/** The lab on the architecture (L4). */
import { events, leases, pods } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'
import { create, isRunning, podInWords } from './workloads.ts'

const leaseNamespace = 'kube-node-lease'

export const architecture: Lab = {
  number: 1,
  title: 'Architecture',
  about: 'Components meet only in the API server: a pod runs when its node reads it there, whoever wrote the name of the node.',
  start: (look) => create.pod(look, 'probe'),
  tasks: [
    {
      text: 'The scheduler chose a node for the pod "probe". Which one? Answer with the annotation "node" of the namespace lab-01.',
      hint: `kubectl wait -n lab-01 --for=condition=Ready pod/probe --timeout=60s
kubectl annotate namespace lab-01 --overwrite node=$(kubectl get pod probe -n lab-01 -o jsonpath='{.spec.nodeName}')`,
      check: async (look) => look.answers('node', (await look.get(pods, 'probe'))?.spec.nodeName),
    },
    {
      text: 'Run a pod "placed" without the scheduler: name its node yourself, in spec.nodeName.',
      hint: `kubectl run placed -n lab-01 --image=lab.skiff.dev/app:1 --overrides='{"spec":{"nodeName":"'$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')'"}}'
kubectl wait -n lab-01 --for=condition=Ready pod/placed --timeout=60s`,
      check: async (look) => {
        const pod = await look.get(pods, 'placed')
        const scheduled = (await look.list(events)).filter(({ reason, involvedObject }) => reason === 'Scheduled' && involvedObject.name === 'placed')
        if (scheduled.length > 0) return passes(false, 'the pod "placed" has an event Scheduled: the scheduler placed it')
        return passes(isRunning(pod), `${podInWords(pod, 'placed')}, and the scheduler wrote no event about it`)
      },
    },
    {
      text: 'A kubelet shows that it is alive by renewing a Lease in the namespace kube-node-lease. For how many seconds is the Lease of the node of "probe" valid? Answer with the annotation "lease-seconds".',
      hint: `kubectl annotate namespace lab-01 --overwrite lease-seconds=$(kubectl get lease -n ${leaseNamespace} $(kubectl get pod probe -n lab-01 -o jsonpath='{.spec.nodeName}') -o jsonpath='{.spec.leaseDurationSeconds}')`,
      check: async (look) => {
        const node = (await look.get(pods, 'probe'))?.spec.nodeName
        if (!node) return passes(false, 'the pod "probe" has no node yet')
        const { spec } = await look.client.of(leases).get({ namespace: leaseNamespace, name: node })
        return look.answers('lease-seconds', String(spec?.leaseDurationSeconds))
      },
    },
  ],
}
