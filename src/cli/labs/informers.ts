/** The lab on informers (L4). */
import { greatest } from '#base/extremes'
import { configMaps, namespaces } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'

const names = ['c-1', 'c-2', 'c-3', 'c-4', 'c-5']

export const informers: Lab = {
  number: 13,
  title: 'Informers and the shared cache',
  about: 'An informer lists once and watches from the revision of the list; what leaves its selection looks to it like a deletion.',
  start: async (look) => {
    for (const name of names) await look.create(configMaps, { metadata: { name, labels: { batch: 'a' } } })
  },
  tasks: [
    {
      text: 'List the ConfigMaps with batch=a of the namespace lab-13. From which revision would an informer watch after that? Answer with the annotation "watch-from": the resourceVersion of the list, not of an object.',
      hint: `kubectl annotate namespace lab-13 --overwrite watch-from=$(kubectl get --raw '/api/v1/namespaces/lab-13/configmaps?labelSelector=batch%3Da' | grep -o '"resourceVersion":"[0-9]*"' | head -1 | cut -d'"' -f4)`,
      check: async (look) => {
        const answer = Number((await look.notes())['watch-from'] ?? Number.NaN)
        if (Number.isNaN(answer)) return passes(false, 'there is no answer yet: kubectl annotate namespace lab-13 watch-from=…')
        const oldest = greatest((await look.list(configMaps, 'batch=a')).map(({ metadata }) => Number(metadata.resourceVersion)))
        // The annotation itself was written at a later revision than the list.
        const written = Number((await look.get(namespaces, look.namespace))?.metadata.resourceVersion)
        const isList = answer >= Math.min(oldest, written) && answer < written
        return passes(isList, isList ? `${answer} is a revision of the list` : `${answer} is no revision that such a list had`)
      },
    },
    {
      text: 'Let c-3 leave the selection batch=a without deleting it: a watch of batch=a reports it as DELETED.',
      hint: 'kubectl label configmap c-3 -n lab-13 --overwrite batch=b',
      check: async (look) => {
        const selected = (await look.list(configMaps, 'batch=a')).map(({ metadata }) => metadata.name)
        const isThere = (await look.get(configMaps, 'c-3')) !== undefined
        return passes(
          isThere && selected.length === names.length - 1 && !selected.includes('c-3'),
          `batch=a selects ${selected.join(', ')}; c-3 ${isThere ? 'exists' : 'is gone'}`,
        )
      },
    },
  ],
}
