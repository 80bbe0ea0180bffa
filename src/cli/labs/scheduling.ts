/** The lab on scheduling (L4). */
import { nodes, pods } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'
import { create, isRunning, podInWords } from './workloads.ts'

const disk = 'lab.skiff.dev/disk'

export const scheduling: Lab = {
  number: 3,
  title: 'Pod scheduling',
  about: 'Filters take nodes away, one plugin after the other; a pod without a node left waits until something changes.',
  start: (look) => create.pod(look, 'stuck', { spec: { nodeSelector: { [disk]: 'fast' } } }),
  cleanUp: async ({ client }) => {
    for (const { metadata } of (await client.of(nodes).list({ labelSelector: disk })).items) {
      await client.of(nodes).patch({ name: metadata.name ?? '' }, 'merge', { metadata: { labels: { [disk]: null } } })
    }
  },
  tasks: [
    {
      text: 'The pod "stuck" stays Pending. Which scheduler plugin rejects the nodes? Answer with the annotation "plugin" of the namespace lab-03. `skiff why pod/stuck -n lab-03` shows it.',
      hint: 'kubectl annotate namespace lab-03 --overwrite plugin=NodeAffinity',
      check: (look) => look.answers('plugin', 'NodeAffinity'),
    },
    {
      text: 'Let "stuck" run without changing the pod.',
      hint: `kubectl label node $(kubectl get nodes -o jsonpath='{.items[0].metadata.name}') --overwrite ${disk}=fast
kubectl wait -n lab-03 --for=condition=Ready pod/stuck --timeout=60s`,
      check: async (look) => {
        const pod = await look.get(pods, 'stuck')
        return passes(isRunning(pod) && pod?.spec.nodeSelector?.[disk] === 'fast', podInWords(pod, 'stuck'))
      },
    },
    {
      text: 'Run two pods with the label app=apart that never share a node: each has a required podAntiAffinity to that label, by kubernetes.io/hostname.',
      hint: `for name in apart-1 apart-2; do kubectl run $name -n lab-03 --image=lab.skiff.dev/app:1 -l app=apart --overrides='{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"apart"}}}]}}}}'; done
kubectl wait -n lab-03 --for=condition=Ready pod -l app=apart --timeout=60s`,
      check: async (look) => {
        const apart = await look.list(pods, 'app=apart')
        const nodes = apart.filter(isRunning).map(({ spec }) => spec.nodeName)
        const required = apart.every(({ spec }) => (spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).length > 0)
        const observed =
          nodes.length === 0 ? 'no pod with app=apart runs' : `the pods run on ${nodes.join(' and ')}${required ? '' : ', and not each of them has the rule'}`
        return passes(nodes.length >= 2 && new Set(nodes).size === nodes.length && required, observed)
      },
    },
  ],
}
