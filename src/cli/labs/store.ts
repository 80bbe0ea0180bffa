/** The lab on the store (L4). */
import { configMaps, namespaces } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { digestOf, type Look } from './look.ts'
import { passes } from './outcome.ts'

const fruits = ['apple', 'cherry', 'fig', 'grape', 'lemon', 'mango', 'peach', 'plum']

async function start(look: Look): Promise<void> {
  // Another cluster has another answer.
  const uid = (await look.get(namespaces, look.namespace))?.metadata.uid ?? ''
  const first = fruits[Number.parseInt(digestOf(uid).slice(0, 6), 16) % fruits.length] ?? ''
  await look.create(configMaps, { metadata: { name: 'basket' }, data: { fruit: first } })
  const revision = (await look.get(configMaps, 'basket'))?.metadata.resourceVersion ?? ''
  for (const fruit of ['kiwi', 'pear']) await look.client.of(configMaps).patch({ namespace: look.namespace, name: 'basket' }, 'merge', { data: { fruit } })
  await look.note({ 'created-at-revision': revision, 'first-digest': digestOf(first) })
}

export const store: Lab = {
  number: 6,
  title: 'The consistent store',
  about: 'Every write gets the next revision, old revisions can be read until they are compacted, and a write against an old one is refused.',
  start,
  tasks: [
    {
      text: 'The ConfigMap "basket" was changed twice since it was created. The annotation "created-at-revision" of the namespace lab-06 names the revision of its creation. Which fruit did it have then? Answer with the annotation "fruit". `skiff history configmap/basket -n lab-06` and `skiff at REVISION get configmap basket -n lab-06` show it.',
      hint: `kubectl annotate namespace lab-06 --overwrite fruit=$(kubectl get --raw "/api/v1/namespaces/lab-06/configmaps?resourceVersionMatch=Exact&resourceVersion=$(kubectl get namespace lab-06 -o jsonpath='{.metadata.annotations.created-at-revision}')" | grep -o '"fruit":"[a-z]*"' | cut -d'"' -f4)`,
      check: async (look) => look.answersDigest('fruit', (await look.notes())['first-digest']),
    },
    {
      text: 'Set data.fruit to "melon" by a patch that names the current resourceVersion in its metadata: such a patch is refused as a Conflict when someone was faster.',
      hint: `kubectl patch configmap basket -n lab-06 --type=merge -p '{"metadata":{"resourceVersion":"'$(kubectl get configmap basket -n lab-06 -o jsonpath='{.metadata.resourceVersion}')'"},"data":{"fruit":"melon"}}'`,
      check: async (look) => {
        const fruit = (await look.get(configMaps, 'basket'))?.data?.fruit
        return passes(fruit === 'melon', `data.fruit is ${fruit}`)
      },
    },
    {
      text: 'At which revision is that change? Answer with the annotation "revision".',
      hint: `kubectl annotate namespace lab-06 --overwrite revision=$(kubectl get configmap basket -n lab-06 -o jsonpath='{.metadata.resourceVersion}')`,
      check: async (look) => {
        const basket = await look.get(configMaps, 'basket')
        if (basket?.data?.fruit !== 'melon') return passes(false, 'data.fruit is not melon yet')
        return look.answers('revision', basket.metadata.resourceVersion)
      },
    },
  ],
}
