/** The lab on the inside of a client (L4). */
import { configMaps, deployments } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'
import { create } from './workloads.ts'

export const clients: Lab = {
  number: 14,
  title: 'Inside a client',
  about: 'A client finds paths by discovery, sends JSON, and chooses how a patch merges lists.',
  start: async (look) => {
    const containers = ['a', 'b'].map((name) => ({ name, image: `lab.skiff.dev/${name}:1` }))
    await create.deployment(look, 'two', 1, { spec: { containers } })
  },
  tasks: [
    {
      text: 'Under which group and version does discovery offer HorizontalPodAutoscalers first? Answer with the annotation "preferred" of the namespace lab-14, as group/version.',
      hint: `kubectl annotate namespace lab-14 --overwrite preferred=$(kubectl get --raw /apis/autoscaling | grep -o '"preferredVersion":{"groupVersion":"[^"]*"' | cut -d'"' -f6)`,
      check: (look) => look.answers('preferred', 'autoscaling/v2'),
    },
    {
      text: 'Create a ConfigMap "raw" with data.made=byhand without any command that knows ConfigMaps: POST to its path (kubectl create --raw).',
      hint: `echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"},"data":{"made":"byhand"}}' | kubectl create --raw /api/v1/namespaces/lab-14/configmaps -f -`,
      check: async (look) => {
        const raw = await look.get(configMaps, 'raw')
        return passes(raw?.data?.made === 'byhand', raw ? `data.made is ${raw.data?.made}` : 'there is no ConfigMap raw')
      },
    },
    {
      text: 'The Deployment "two" has the containers a and b. Set the image of b to lab.skiff.dev/b:2 with a strategic merge patch that names only b: lists of containers are merged by name. (A JSON merge patch would drop a.)',
      hint: `kubectl patch deployment two -n lab-14 --type=strategic -p '{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"lab.skiff.dev/b:2"}]}}}}'`,
      check: async (look) => {
        const containers = (await look.get(deployments, 'two'))?.spec.template.spec?.containers ?? []
        const images = containers.map(({ name, image }) => `${name}: ${image}`)
        return passes(
          images.length === 2 && images.includes('a: lab.skiff.dev/a:1') && images.includes('b: lab.skiff.dev/b:2'),
          images.join(', ') || 'there is no Deployment two',
        )
      },
    },
  ],
}
