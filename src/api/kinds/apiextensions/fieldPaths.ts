/**
 * Paths of rules and selectable fields in a schema (L1): `.spec.name`, `.labels['app']`. They name fields that exist.
 * Upstream: ValidFieldPath of apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (v1.36).
 */
import { FieldPath } from '#api/machinery/fieldPath'
import { additionalOf, itemsOf, type Props } from './schemaWalk.ts'

export type ResolvedPath =
  | {
      readonly ok: true
      /** As errors write it, without the leading dot. */
      readonly path: FieldPath
      readonly first: string
      readonly props: Props | undefined
    }
  | { readonly ok: false; readonly why: string }

/** Names may hold letters, digits, _ and, escaped by nothing, dashes and slashes only in brackets. */
const step = /^(?:\.([^.[\]'"]+)|\[(['"])((?:\\.|(?!\2).)*)\2\]|\[(\d+)\])/

/** `arrays`: brackets are allowed, for keys of maps. */
export function resolveFieldPath(text: string, props: Props, { arrays }: { readonly arrays: boolean }): ResolvedPath {
  if (text === '') return { ok: false, why: 'path must not be empty' }
  if (!text.startsWith('.') && !text.startsWith('[')) return { ok: false, why: `expected [ or . but got: ${text.slice(0, 1)}` }
  let rest = text
  let path = FieldPath.of()
  let at: Props | undefined = props
  let first = ''
  while (rest !== '') {
    const match = step.exec(rest)
    if (!match) return { ok: false, why: `unexpected end of JSON path at ${JSON.stringify(rest)}` }
    const [whole, plain, , quoted, index] = match
    if (plain === undefined && !arrays) return { ok: false, why: 'array notation is not allowed' }
    if (index !== undefined) {
      if (!at || !itemsOf(at)) return { ok: false, why: 'index of something that is no list' }
      return { ok: false, why: 'does not support array index' }
    }
    const name = plain ?? (quoted as string).replace(/\\(.)/g, '$1')
    if (first === '') first = name
    const additional: Props | undefined = at && additionalOf(at)
    const property: Props | undefined = at && Object.hasOwn(at.properties ?? {}, name) ? at.properties?.[name] : undefined
    if (property) path = path.child(name)
    else if (additional) path = path.key(name)
    else if (at?.['x-kubernetes-preserve-unknown-fields'] || isObjectMeta(at, name)) path = path.child(name)
    else return { ok: false, why: 'does not refer to a valid field' }
    at = property ?? additional
    rest = rest.slice(whole.length)
  }
  return { ok: true, path, first, props: at }
}

/** Objects have their metadata without a schema saying so. */
function isObjectMeta(props: Props | undefined, name: string): boolean {
  return props === undefined ? false : (name === 'name' || name === 'generateName') && props.type === 'object' && props.properties === undefined
}
