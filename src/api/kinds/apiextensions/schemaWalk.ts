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
export function schemasIn(props: Props | undefined): readonly Props[] {
  const found: Props[] = []
  if (props) collect(props, found)
  return found
}

function collect(props: Props, found: Props[]): void {
  found.push(props)
  for (const list of [props.items, props.allOf, props.anyOf, props.oneOf]) {
    if (Array.isArray(list)) for (const child of list) collectFrom(child, found)
    else collectFrom(list, found)
  }
  collectFrom(props.not, found)
  for (const map of [props.properties, props.patternProperties, props.definitions, props.dependencies]) {
    if (map) for (const child of Object.values(map)) collectFrom(child, found)
  }
  collectFrom(props.additionalProperties, found)
  collectFrom(props.additionalItems, found)
}

/** A definition may have tens of thousands of fields, most of which hold nothing. */
function collectFrom(child: unknown, found: Props[]): void {
  if (child !== undefined && isObject(child)) collect(child as Props, found)
}
