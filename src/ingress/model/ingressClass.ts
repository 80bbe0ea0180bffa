/** Decides which Ingresses this controller serves (L3, pure). Upstream: networking.k8s.io/v1 IngressClass and its default-class annotation (v1.36). */
import type { Ingress, IngressClass } from '#api/gen/types/networking.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'

/** spec.controller of the classes that belong to this controller. */
export const controllerName = 'skiff.dev/ingress'

const defaultAnnotation = 'ingressclass.kubernetes.io/is-default-class'
/** The name of the class before there was a field for it. */
const classAnnotation = 'kubernetes.io/ingress.class'

export interface OwnClasses {
  readonly names: ReadonlySet<string>
  /** One of them is a default class: an Ingress without a class belongs to it. */
  readonly includesDefault: boolean
}

export function ownClasses(classes: readonly Frozen<IngressClass>[]): OwnClasses {
  const own = classes.filter(({ spec }) => spec?.controller === controllerName)
  return {
    names: new Set(own.map(({ metadata }) => metadata.name ?? '')),
    includesDefault: own.some(({ metadata }) => ownValue(metadata.annotations, defaultAnnotation) === 'true'),
  }
}

export function isOurs(ingress: Frozen<Ingress>, { names, includesDefault }: OwnClasses): boolean {
  const name = ingress.spec?.ingressClassName ?? ownValue(ingress.metadata.annotations, classAnnotation)
  return name === undefined ? includesDefault : names.has(name)
}
