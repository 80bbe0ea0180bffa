/** Walking through the schemas of CustomResourceDefinitions (L1): every node, wherever a schema may hold another. */
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import type { Frozen } from '#api/machinery/meta'
import { isObject } from '#api/machinery/objects'

export type Props = Frozen<JSONSchemaProps>

/** The schema of items, when there is one for all. */
export function itemsOf(props: Props): Props | undefined {
  return isObject(props.items) ? (props.items as Props) : undefined
}

/** The schema of additional properties; undefined when they are a boolean or absent. */
export function additionalOf(props: Props): Props | undefined {
  return isObject(props.additionalProperties) ? (props.additionalProperties as Props) : undefined
}

/** Every schema in `props`, itself first. */
export function* schemasIn(props: Props | undefined): Generator<Props> {
  if (!props) return
  yield props
  for (const list of [props.items, props.allOf, props.anyOf, props.oneOf]) {
    const children = Array.isArray(list) ? list : list === undefined ? [] : [list]
    for (const child of children) if (isObject(child)) yield* schemasIn(child as Props)
  }
  yield* schemasIn(props.not)
  for (const map of [props.properties, props.patternProperties, props.definitions, props.dependencies]) {
    for (const child of Object.values(map ?? {})) if (isObject(child)) yield* schemasIn(child as Props)
  }
  for (const child of [additionalOf(props), props.additionalItems]) if (isObject(child)) yield* schemasIn(child as Props)
}
