/** The lab on custom resources and operators (L4). */
import { isConditionTrue } from '#api/machinery/conditions'
import { configMaps, customResourceDefinitions, namespaced } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'

const group = 'lab-08.skiff.dev'
const ships = namespaced(group, 'v1', 'ships', 'Ship')
const definition = JSON.stringify({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `ships.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'ships', singular: 'ship', kind: 'Ship' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { masts: { type: 'integer', minimum: 1 } } },
              status: { type: 'object', properties: { phase: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
})

interface Ship {
  readonly metadata: { readonly name: string; readonly generation?: number }
  readonly spec?: { readonly masts?: number }
  readonly status?: { readonly phase?: string }
}

export const operators: Lab = {
  number: 8,
  title: 'Custom resources and operators',
  about: 'A definition gives a kind with its rules; a finalizer keeps an object until its operator has cleaned up; status has a writer of its own.',
  start: async (look) => {
    await look.create(configMaps, { metadata: { name: 'anchored', finalizers: [`${group}/anchor`] } })
    await look.client.of(configMaps).delete({ namespace: look.namespace, name: 'anchored' })
  },
  cleanUp: (look) => look.remove(customResourceDefinitions, `ships.${group}`),
  tasks: [
    {
      text: `Define the kind Ship (ships.${group}, v1, namespaced, with the subresource status): spec.masts is a whole number of at least 1, status.phase a text.`,
      hint: `echo '${definition}' | kubectl apply -f -
kubectl wait --for=condition=Established crd/ships.${group} --timeout=60s`,
      check: async (look) => {
        const crd = await look.get(customResourceDefinitions, `ships.${group}`)
        if (!isConditionTrue(crd?.status?.conditions as never, 'Established'))
          return passes(false, crd ? 'the definition is not Established' : 'there is no such definition')
        const refusal = await look.refusal(ships, { metadata: { name: 'raft' }, spec: { masts: 0 } } as never)
        return passes(refusal !== undefined, refusal ?? 'a ship with 0 masts is admitted')
      },
    },
    {
      text: 'Create a ship "pearl" with 3 masts, and write status.phase "Sailing" through its subresource status: that leaves metadata.generation as it is.',
      hint: `echo '{"apiVersion":"${group}/v1","kind":"Ship","metadata":{"name":"pearl"},"spec":{"masts":3}}' | kubectl apply -n lab-08 -f -
kubectl patch ships.${group} pearl -n lab-08 --subresource=status --type=merge -p '{"status":{"phase":"Sailing"}}'`,
      check: async (look) => {
        const pearl = (await look.get(ships, 'pearl').catch(() => undefined)) as Ship | undefined
        if (!pearl) return passes(false, 'there is no ship "pearl"')
        const { generation } = pearl.metadata
        return passes(
          pearl.spec?.masts === 3 && pearl.status?.phase === 'Sailing' && generation === 1,
          `${pearl.spec?.masts} masts, phase ${pearl.status?.phase}, generation ${generation}`,
        )
      },
    },
    {
      text: 'The ConfigMap "anchored" was deleted, and a finalizer keeps it. Do what its operator would do at the end: take the finalizer away.',
      hint: `kubectl patch configmap anchored -n lab-08 --type=merge -p '{"metadata":{"finalizers":null}}'`,
      check: async (look) => {
        const anchored = await look.get(configMaps, 'anchored')
        return passes(!anchored, anchored ? `it is kept by ${anchored.metadata.finalizers?.join(', ')}` : 'the ConfigMap is gone')
      },
    },
  ],
}
