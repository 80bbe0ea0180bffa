/** The kinds of the Gateway API as far as this ingress reads them (L3, pure). Upstream: sigs.k8s.io/gateway-api v1.6.3, apis/v1. */
import type { KubeObject } from '#api/machinery/meta'

/** spec.controllerName of the classes that belong to this controller. */
export const gatewayControllerName = 'skiff.dev/gateway'
export const gatewayGroup = 'gateway.networking.k8s.io'

export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number | undefined
  readonly lastTransitionTime?: string | undefined
}

export interface GatewayClass extends KubeObject {
  spec: { controllerName: string; parametersRef?: object }
  status?: { conditions?: Condition[]; supportedFeatures?: { name: string }[] }
}

export interface ObjectReference {
  readonly group?: string | undefined
  readonly kind?: string | undefined
  readonly name: string
  readonly namespace?: string | undefined
  readonly port?: number | undefined
}

export interface RouteKind {
  readonly group?: string | undefined
  readonly kind: string
}

export interface LabelSelector {
  readonly matchLabels?: Record<string, string>
  readonly matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

export interface Listener {
  readonly name: string
  readonly hostname?: string
  readonly port: number
  readonly protocol: string
  readonly tls?: { readonly mode?: string; readonly certificateRefs?: readonly ObjectReference[] }
  readonly allowedRoutes?: {
    readonly namespaces?: { readonly from?: string; readonly selector?: LabelSelector }
    readonly kinds?: readonly RouteKind[]
  }
}

export interface ListenerStatus {
  readonly name: string
  readonly supportedKinds: readonly RouteKind[]
  readonly attachedRoutes: number
  readonly conditions: readonly Condition[]
}

export interface Gateway extends KubeObject {
  spec: {
    gatewayClassName: string
    listeners?: Listener[]
    addresses?: object[]
    allowedListeners?: { readonly namespaces?: { readonly from?: string; readonly selector?: LabelSelector } }
  }
  status?: {
    addresses?: { type?: string; value: string }[]
    conditions?: Condition[]
    listeners?: ListenerStatus[]
    attachedListenerSets?: number
  }
}

export interface ListenerSet extends KubeObject {
  spec: { parentRef?: ObjectReference; listeners?: Listener[] }
  status?: { conditions?: Condition[]; listeners?: ListenerStatus[] }
}

export interface ParentRef extends ObjectReference {
  readonly sectionName?: string | undefined
}

export interface NamedValue {
  readonly name: string
  readonly value: string
  readonly type?: string
}

export interface HeaderFilter {
  readonly set?: readonly NamedValue[]
  readonly add?: readonly NamedValue[]
  readonly remove?: readonly string[]
}

export interface PathModifier {
  readonly type: string
  readonly replaceFullPath?: string
  readonly replacePrefixMatch?: string
}

export interface Filter {
  readonly type: string
  readonly requestHeaderModifier?: HeaderFilter
  readonly responseHeaderModifier?: HeaderFilter
  readonly requestRedirect?: { scheme?: string; hostname?: string; port?: number; statusCode?: number; path?: PathModifier }
  readonly urlRewrite?: { hostname?: string; path?: PathModifier }
  readonly requestMirror?: { backendRef: ObjectReference; percent?: number; fraction?: { numerator: number; denominator?: number } }
  readonly cors?: {
    allowOrigins?: string[]
    allowMethods?: string[]
    allowHeaders?: string[]
    exposeHeaders?: string[]
    allowCredentials?: boolean
    maxAge?: number
  }
}

export interface HttpMatch {
  readonly path?: { readonly type?: string; readonly value?: string }
  readonly headers?: readonly NamedValue[]
  readonly queryParams?: readonly NamedValue[]
  readonly method?: string
  /** Not of HTTPRoutes: a method of any gRPC service. */
  readonly grpcMethod?: string | undefined
}

export interface GrpcRule extends Omit<HttpRule, 'matches' | 'timeouts' | 'retry'> {
  readonly matches?: readonly {
    readonly method?: { readonly type?: string; readonly service?: string; readonly method?: string }
    readonly headers?: readonly NamedValue[]
  }[]
}

export interface GrpcRoute extends KubeObject {
  spec: { parentRefs?: ParentRef[]; hostnames?: string[]; rules?: GrpcRule[] }
  status?: { parents?: RouteParentStatus[] }
}

export interface HttpBackendRef extends ObjectReference {
  readonly weight?: number
  readonly filters?: readonly Filter[]
}

export interface HttpRule {
  readonly name?: string
  readonly matches?: readonly HttpMatch[]
  readonly filters?: readonly Filter[]
  readonly backendRefs?: readonly HttpBackendRef[]
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string }
  readonly retry?: object
  readonly sessionPersistence?: object
}

export interface RouteParentStatus {
  readonly parentRef: ParentRef
  readonly controllerName: string
  readonly conditions: readonly Condition[]
}

export interface HttpRoute extends KubeObject {
  spec: { parentRefs?: ParentRef[]; hostnames?: string[]; rules?: HttpRule[] }
  status?: { parents?: RouteParentStatus[] }
}

export interface TlsRoute extends KubeObject {
  spec: { parentRefs?: ParentRef[]; hostnames?: string[]; rules?: { name?: string; backendRefs?: HttpBackendRef[] }[] }
  status?: { parents?: RouteParentStatus[] }
}

export interface PolicyTarget {
  readonly group?: string
  readonly kind: string
  readonly name: string
  readonly sectionName?: string
}

export interface PolicyAncestorStatus {
  readonly ancestorRef: ParentRef
  readonly controllerName: string
  readonly conditions: readonly Condition[]
}

export interface BackendTlsPolicy extends KubeObject {
  spec: {
    targetRefs?: PolicyTarget[]
    validation?: {
      caCertificateRefs?: PolicyTarget[]
      wellKnownCACertificates?: string
      hostname?: string
      subjectAltNames?: { type: string; hostname?: string; uri?: string }[]
    }
    options?: Record<string, string>
  }
  status?: { ancestors?: PolicyAncestorStatus[] }
}

export interface ReferenceGrant extends KubeObject {
  spec: { from: { group: string; kind: string; namespace: string }[]; to: { group: string; kind: string; name?: string }[] }
}
