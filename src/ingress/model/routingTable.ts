/**
 * The routing table of all Ingresses (L3, pure): which Service a host and path belong to, and which Secret holds the certificate of a server name. A change
 * touches only the places that the changed Ingresses name. Where two Ingresses claim the same path or certificate, the older one has it. The most specific
 * host decides: exact, then wildcard, then rules without a host. For certificates, Ingresses with a rule for the host come first, so that an Ingress
 * gives no certificate to a host that another one serves. Upstream leaves ties to controllers; these decide as ingress-nginx does.
 */
import { Claims } from './claims.ts'
import { wildcardOf } from './hostName.ts'
import { getOrMake, HostRoutes } from './hostRoutes.ts'
import { type CertificateOf, type ParsedIngress, shortened, shownPath } from './parsedIngress.ts'
import type { BackendRef, Route } from './route.ts'

export interface IngressRoute extends Route {
  /** `namespace/name`. */
  readonly ingress: string
  readonly backend: BackendRef
}

/** Places between two pauses of an update. */
const stride = 200

export class RoutingTable {
  readonly #ingresses = new Map<string, ParsedIngress>()
  readonly #hosts = new Map<string, HostRoutes<IngressRoute>>()
  readonly #certificates = new Map<string, Claims<CertificateOf>>()
  /** By Secret, the keys of the Ingresses that name it. */
  readonly #naming = new Map<string, Set<string>>()
  /** Default backends of Ingresses without rules: for all that no rule matches. */
  readonly #catchAll = new Claims<IngressRoute>()

  /** @param host as hostOf() reads it @param path as comparablePath() gives it */
  route(host: string, path: string): IngressRoute | undefined {
    const routes = this.#hosts.get(host) ?? this.#hosts.get(wildcardOf(host) ?? '') ?? this.#hosts.get('')
    return routes?.match(path) ?? this.#catchAll.value
  }

  /** `namespace/name` of the Secret with the certificate of this server name. */
  certificate(serverName: string): string | undefined {
    const exact = this.#certificates.get(serverName)?.value
    const covering = exact?.isRouted ? undefined : this.#certificates.get(wildcardOf(serverName) ?? '')?.value
    return (covering?.isRouted ? covering : (exact ?? covering))?.secret
  }

  get(key: string): ParsedIngress | undefined {
    return this.#ingresses.get(key)
  }

  keys(): readonly string[] {
    return [...this.#ingresses.keys()]
  }

  /** The keys of the Ingresses that name the Secret. */
  ingressesOf(secret: string): ReadonlySet<string> {
    return this.#naming.get(secret) ?? new Set()
  }

  /** Why parts of the Ingress are not served; empty: all of it is. */
  problems(key: string): readonly string[] {
    const ingress = this.#ingresses.get(key)
    if (!ingress) return []
    const lost: string[] = []
    for (const [host, rules] of ingress.hosts) {
      const routes = this.#hosts.get(host)
      for (const rule of rules) {
        if (!routes?.at(rule)?.isHeldBy(key)) lost.push(`path ${shownPath(rule)} of host "${host}" belongs to an older Ingress`)
      }
      if (ingress.defaultBackend && !routes?.fallback.isHeldBy(key)) lost.push(`an older Ingress has the default backend of host "${host}"`)
    }
    for (const [host, { secret }] of ingress.certificates) {
      if (this.certificate(host) !== secret) lost.push(`the certificate of host "${host}" is that of an Ingress that is older or has a rule for the host`)
    }
    if (isCatchAll(ingress) && !this.#catchAll.isHeldBy(key)) lost.push('an older Ingress has the default backend of all hosts')
    return [...ingress.problems, ...shortened(lost)]
  }

  /**
   * Takes the changed Ingresses; undefined: it is gone. Yields now and then, so that the caller can pause; no place is without its route meanwhile.
   * @returns the keys of the Ingresses whose problems may have changed
   */
  *update(changes: ReadonlyMap<string, ParsedIngress | undefined>): Generator<void, ReadonlySet<string>> {
    const touched = new Set(changes.keys())
    let places = 0
    for (const [key, ingress] of changes) {
      const old = this.#ingresses.get(key)
      if (ingress) this.#ingresses.set(key, ingress)
      else this.#ingresses.delete(key)
      const steps = [...(ingress ? [this.#claim(ingress, touched)] : []), ...(old ? [this.#release(old, ingress, touched)] : [])]
      for (const step of steps) for (const _ of step) if (++places % stride === 0) yield
      if (++places % stride === 0) yield
    }
    return touched
  }

  *#claim(ingress: ParsedIngress, touched: Set<string>): Generator<void> {
    const { key, defaultBackend } = ingress
    for (const [host, rules] of ingress.hosts) {
      const routes = getOrMake(this.#hosts, host, () => new HostRoutes<IngressRoute>())
      routes.claimants.add(key)
      if (defaultBackend) routes.fallback.set(ingress, { ingress: key, backend: defaultBackend }, touched)
      for (const rule of rules) {
        routes.ensure(rule).set(ingress, { ingress: key, backend: rule.backend }, touched)
        yield
      }
      yield
    }
    for (const [host, certificate] of ingress.certificates) {
      // Behind those that have a rule for the host.
      const age = certificate.isRouted ? ingress.age : `~${ingress.age}`
      getOrMake(this.#certificates, host, () => new Claims<CertificateOf>()).set({ key, age }, certificate, touched)
      yield
    }
    for (const secret of ingress.secrets) {
      getOrMake(this.#naming, secret, () => new Set()).add(key)
      yield
    }
    if (defaultBackend && isCatchAll(ingress)) this.#catchAll.set(ingress, { ingress: key, backend: defaultBackend }, touched)
  }

  /** Gives up what the old Ingress claims and the new one does not. */
  *#release(old: ParsedIngress, now: ParsedIngress | undefined, touched: Set<string>): Generator<void> {
    const { key } = old
    for (const [host, rules] of old.hosts) {
      const routes = this.#hosts.get(host)
      if (!routes) continue
      const kept = new Set(now?.hosts.get(host)?.map(patternKey))
      for (const rule of rules) {
        if (kept.has(patternKey(rule))) continue
        routes.at(rule)?.delete(key, touched)
        routes.tidy(rule)
        yield
      }
      if (!now?.defaultBackend || !now.hosts.has(host)) routes.fallback.delete(key, touched)
      if (!now?.hosts.has(host)) routes.claimants.delete(key)
      if (routes.claimants.size === 0) this.#hosts.delete(host)
      yield
    }
    for (const secret of old.secrets) {
      if (now?.secrets.has(secret)) continue
      const naming = this.#naming.get(secret)
      naming?.delete(key)
      if (naming?.size === 0) this.#naming.delete(secret)
      yield
    }
    for (const host of old.certificates.keys()) {
      if (now?.certificates.has(host)) continue
      const claims = this.#certificates.get(host)
      claims?.delete(key, touched)
      if (claims?.isEmpty) this.#certificates.delete(host)
      yield
    }
    if (!now || !isCatchAll(now)) this.#catchAll.delete(key, touched)
  }
}

const isCatchAll = ({ hosts, defaultBackend }: ParsedIngress) => hosts.size === 0 && defaultBackend !== undefined

const patternKey = ({ isExact, path }: { readonly isExact: boolean; readonly path: string }) => (isExact ? path : `${path}/*`)
