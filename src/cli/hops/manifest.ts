/** The client's part of an apply (L4): reads a manifest and validates it before a connection is made, by the schemas that the server has, too. */
import { builtInResources } from '#api/discovery/resources'
import { parseGroupVersion, type Unstructured } from '#api/machinery/meta'
import { parseYamlDocuments } from '#api/machinery/yaml'
import { schemaFor } from '#api/schema/builtIn'
import { decode, strictProblems } from '#api/schema/decode'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { CommandError } from '../exitCodes.ts'

/** Where objects of a kind are. */
export interface Place {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly namespaced: boolean
}

/** The built-in kinds that become pods. */
const becomePods: ReadonlySet<string> = new Set(['Pod', 'CronJob', 'DaemonSet', 'Deployment', 'Job', 'ReplicaSet', 'ReplicationController', 'StatefulSet'])

/** The one object of a manifest, of which pods can come. @throws CommandError usage */
export function readManifest(text: string, file: string): Unstructured {
  const wrong = (why: string) => new CommandError('usage', `${file}: ${why}`)
  let documents: unknown[]
  try {
    documents = parseYamlDocuments(text).filter((document) => document !== null && document !== undefined)
  } catch (error) {
    throw wrong(messageOf(error))
  }
  if (documents.length !== 1) throw wrong(`expected one object, found ${documents.length}`)
  const object = documents[0] as Unstructured
  if (typeof object !== 'object' || typeof object.apiVersion !== 'string' || typeof object.kind !== 'string') throw wrong('expected apiVersion and kind')
  if (typeof object.metadata?.name !== 'string') throw wrong('expected metadata.name')
  if (builtInPlace(object.apiVersion, object.kind) && !becomePods.has(object.kind))
    throw new CommandError('usage', `${file}: a ${object.kind} makes no pod, so there is nothing to trace; nothing was applied`, {
      hint: `apply it with: kubectl apply -f ${file}`,
    })
  validate(object, wrong)
  return object
}

/** Unknown kinds are the server's to judge. */
function validate(object: Unstructured, wrong: (why: string) => Error): void {
  const { group, version } = parseGroupVersion(object.apiVersion ?? '')
  const schema = schemaFor(group, version, object.kind ?? '')
  if (!schema) return
  let problems: string[]
  try {
    const { unknownFields } = decode(deepCopy(object), schema, { unknown: 'collect' })
    problems = strictProblems(unknownFields, [])
  } catch (error) {
    throw wrong(messageOf(error))
  }
  if (problems.length > 0) throw wrong(problems.join(', '))
}

export function builtInPlace(apiVersion: string, kind: string): Place | undefined {
  const { group, version } = parseGroupVersion(apiVersion)
  return builtInResources().find((one) => one.group === group && one.version === version && one.kind === kind && one.storage !== undefined)
}

export function pathOf({ group, version, resource, namespaced }: Place, namespace: string, name: string): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return `${root}${namespaced ? `/namespaces/${encodeURIComponent(namespace)}` : ''}/${resource}/${encodeURIComponent(name)}`
}
