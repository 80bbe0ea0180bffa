/** The lab on the scheduler framework (L4). */
import { greatest, least } from '#base/extremes'
import { events, pods } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'
import { create, isRunning, podInWords } from './workloads.ts'

export const framework: Lab = {
  number: 5,
  title: 'The scheduler framework',
  about: 'A scheduling gate holds a pod back before the first plugin; a binding is one write, which any client with the right may do.',
  start: async (look) => {
    await create.pod(look, 'gated', { spec: { schedulingGates: [{ name: 'lab.skiff.dev/wait' }] } })
    await create.pod(look, 'foreign', { spec: { schedulerName: 'nobody' } })
  },
  tasks: [
    {
      text: 'The pod "gated" is not even tried: it has a scheduling gate. Take the gate away.',
      hint: `kubectl patch pod gated -n lab-05 --type=json -p '[{"op":"remove","path":"/spec/schedulingGates/0"}]'
kubectl wait -n lab-05 --for=condition=Ready pod/gated --timeout=60s`,
      check: async (look) => {
        const pod = await look.get(pods, 'gated')
        return passes(isRunning(pod), `${podInWords(pod, 'gated')}, scheduling gates: ${pod?.spec.schedulingGates?.length ?? 0}`)
      },
    },
    {
      text: 'The pod "foreign" names a scheduler that does not exist. Be that scheduler: create the binding (POST to pods/foreign/binding) to a simulated node.',
      hint: `echo '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"foreign"},"target":{"kind":"Node","name":"'$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')'"}}' | kubectl create --raw /api/v1/namespaces/lab-05/pods/foreign/binding -f -
kubectl wait -n lab-05 --for=condition=Ready pod/foreign --timeout=60s`,
      check: async (look) => {
        const pod = await look.get(pods, 'foreign')
        const scheduled = (await look.list(events)).some(({ reason, involvedObject }) => reason === 'Scheduled' && involvedObject.name === 'foreign')
        return passes(isRunning(pod) && pod?.spec.schedulerName === 'nobody' && !scheduled, podInWords(pod, 'foreign'))
      },
    },
    {
      text: 'Run four pods with the label app=even, spread over the nodes by a topologySpreadConstraint with maxSkew 1 and DoNotSchedule, by kubernetes.io/hostname.',
      hint: `for n in 1 2 3 4; do kubectl run even-$n -n lab-05 --image=lab.skiff.dev/app:1 -l app=even --overrides='{"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"even"}}}]}}'; done
kubectl wait -n lab-05 --for=condition=Ready pod -l app=even --timeout=60s`,
      check: async (look) => {
        const even = (await look.list(pods, 'app=even')).filter(isRunning)
        const perNode = new Map<string, number>()
        for (const { spec } of even) perNode.set(spec.nodeName ?? '', (perNode.get(spec.nodeName ?? '') ?? 0) + 1)
        const constrained = even.every(({ spec }) => spec.topologySpreadConstraints?.some(({ maxSkew }) => maxSkew === 1))
        const counts = [...perNode].map(([node, count]) => `${count} on ${node}`)
        return passes(
          even.length >= 4 && constrained && greatest([...perNode.values()]) - least([...perNode.values()]) <= 1,
          counts.join(', ') || 'no pod with app=even runs',
        )
      },
    },
  ],
}
