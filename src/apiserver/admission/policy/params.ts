/**
 * The parameters of a policy's binding (L3): one object by its name, or all objects of a selector; in the request's namespace
 * unless the binding names one.
 * Upstream: CollectParams of apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go (v1.36).
 */
import type { ParamKind, ParamRef } from '#api/gen/types/admissionregistration.v1'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import type { Cancellation } from '../../core/cancellation.ts'
import type { KnownKind, ObjectReader } from '../../core/objectReader.ts'

export type Param = Frozen<KubeObject> | undefined

/** The kind of the parameters. @throws Error when the server does not have it */
export function paramKindOf(paramKind: Frozen<ParamKind>, reader: ObjectReader): KnownKind {
  const { apiVersion = '', kind = '' } = paramKind
  const known = reader.ofKind?.(apiVersion, kind)
  if (known) return known
  const { group, version } = parseGroupVersion(apiVersion)
  throw new Error(`failed to find resource referenced by paramKind: '${group}/${version}, Kind=${kind}'`)
}

/**
 * @returns one undefined if the policy or the binding has no parameters; an empty list if none exist and that is allowed
 * @throws Error with upstream's text
 */
export async function collectParams(
  paramKind: Frozen<ParamKind> | undefined,
  ref: Frozen<ParamRef> | undefined,
  namespace: string,
  reader: ObjectReader,
  cancellation?: Cancellation,
): Promise<readonly Param[]> {
  if (!paramKind || !ref) return [undefined]
  const known = paramKindOf(paramKind, reader)
  const found = find(known, ref, paramsNamespace(known, ref, namespace), reader)
  if (found.length === 0 && ref.parameterNotFoundAction === 'Deny') throw new Error('no params found for policy binding with `Deny` parameterNotFoundAction')
  const { forms } = known
  if (!forms) return found
  return Promise.all(found.map((param) => forms.show(param, paramKind.apiVersion ?? '', cancellation)))
}

function paramsNamespace({ namespaced }: KnownKind, ref: Frozen<ParamRef>, namespace: string): string {
  if (!namespaced) {
    if (ref.namespace) throw new Error('paramRef.namespace must not be provided for a cluster-scoped `paramKind`')
    return ''
  }
  const chosen = ref.namespace || namespace
  if (chosen === '') throw new Error('cannot use namespaced paramRef in policy binding that matches cluster-scoped resources')
  return chosen
}

function find(known: KnownKind, { name, selector }: Frozen<ParamRef>, namespace: string, reader: ObjectReader): readonly Frozen<KubeObject>[] {
  if (name) {
    if (selector) throw new Error('paramRef.name and paramRef.selector are mutually exclusive')
    const found = reader.get<KubeObject>(known, namespace, name)
    return found ? [found] : []
  }
  if (!selector) throw new Error('one of name or selector must be provided')
  const chosen = selectorOf(selector)
  return reader.list<KubeObject>(known, namespace).filter(({ metadata }) => chosen.matches(metadata.labels))
}
