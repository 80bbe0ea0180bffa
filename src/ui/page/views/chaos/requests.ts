/** Reads what faults choose among, and sends them (L4): requests of the user, which the server authorizes one by one. */
import { candidates, type FaultyPod, simulatedNodes } from '../../../model/chaos.ts'
import { listPath } from '../../../model/places.ts'
import { get, messageOf } from '../../api.ts'
import { say } from '../../state.ts'

export const podKind = { group: '', version: 'v1', resource: 'pods' }
export const nodeKind = { group: '', version: 'v1', resource: 'nodes' }
const metadataForm = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'

/** A selection is read up to here, in the order of names. */
export const mostCandidates = 500
const mostNodes = 10_000

type Listed<T> = { readonly items: readonly T[] }

/** @param labels a label selector; empty: all pods of the namespace */
export async function simulatedPods(scope: string, labels: string, signal?: AbortSignal): Promise<FaultyPod[]> {
  const [pods, nodes] = [
    new URLSearchParams({ limit: String(mostCandidates) }),
    new URLSearchParams({ limit: String(mostNodes), labelSelector: simulatedNodes }),
  ]
  if (labels !== '') pods.set('labelSelector', labels)
  const options = signal ? { signal } : {}
  const [found, own] = await Promise.all([
    get<Listed<FaultyPod>>(`${listPath(podKind, scope)}?${pods}`, options),
    get<Listed<FaultyPod>>(`${listPath(nodeKind)}?${nodes}`, { ...options, accept: metadataForm }),
  ])
  return candidates(found.items, new Set(own.items.map(({ metadata }) => metadata.name ?? '')), scope)
}

const mostAtOnce = 8

/** Sends a request for each of them, a few at a time, and says how it ended. @param done as a heading of the number: `Nodes cordoned` */
export async function sendToAll<T>(all: readonly T[], done: string, send: (one: T) => Promise<unknown>): Promise<void> {
  const left = [...all]
  let failure: string | undefined
  let failed = 0
  const work = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) {
      try {
        await send(one)
      } catch (error) {
        failed++
        failure ??= messageOf(error)
      }
    }
  }
  await Promise.all(Array.from({ length: mostAtOnce }, work))
  if (all.length > failed) say('good', `${done}: ${all.length - failed}`)
  if (failure !== undefined) say('bad', `Refused: ${failed} of ${all.length}: ${failure}`)
}
