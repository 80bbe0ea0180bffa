/**
 * How webhooks are addressed (L1): a URL or a service, and the certificates to trust. Shared by admission and conversion webhooks.
 * Upstream: apiserver/pkg/util/webhook/validation.go (v1.36).
 */
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Subdomain, isPortNumber } from '#api/machinery/names'

const form = '; desired format: https://host[/path]'

/** The faults of a webhook's URL. `forceHttps`: nothing else is allowed. */
export function validateWebhookUrl(path: FieldPath, url: string, forceHttps = true): FieldError[] {
  const parts = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(url)
  if (!parts || /[\s\p{Cc}]/u.test(url)) return [fieldError.required(path, `url must be a valid URL: parse ${JSON.stringify(url)}: invalid URL${form}`)]
  const [, scheme = '', authority = '', , query = '', fragment = ''] = parts
  const at = authority.lastIndexOf('@')
  const errors: FieldError[] = []
  if (forceHttps && scheme !== 'https') errors.push(fieldError.invalid(path, scheme, `'https' is the only allowed URL scheme${form}`))
  if (authority.slice(at + 1) === '') errors.push(fieldError.invalid(path, '', `host must be specified${form}`))
  if (at >= 0) errors.push(fieldError.invalid(path, authority.slice(0, at), 'user information is not permitted in the URL'))
  if (fragment.length > 1) errors.push(fieldError.invalid(path, fragment.slice(1), 'fragments are not permitted in the URL'))
  if (query.length > 1) errors.push(fieldError.invalid(path, query.slice(1), 'query parameters are not permitted in the URL'))
  return errors
}

interface ServiceReference {
  readonly name?: string | undefined
  readonly namespace?: string | undefined
  readonly path?: string | undefined
  readonly port?: number | undefined
}

/** The faults of a reference to a webhook's service. */
export function validateWebhookService(path: FieldPath, { name, namespace, path: urlPath, port = 443 }: ServiceReference): FieldError[] {
  const errors: FieldError[] = []
  if (!name) errors.push(fieldError.required(path.child('name')))
  if (!namespace) errors.push(fieldError.required(path.child('namespace')))
  const faults = isPortNumber(port)
  if (faults.length > 0) errors.push(fieldError.invalid(path.child('port'), port, `port is not valid: ${faults.join(', ')}`))
  if (!urlPath || urlPath === '/') return errors
  const bad = (detail: string) => errors.push(fieldError.invalid(path.child('path'), urlPath, detail))
  if (urlPath === '//') {
    bad('segment[0] may not be empty')
    return errors
  }
  if (!urlPath.startsWith('/')) bad("must start with a '/'")
  for (const [index, step] of urlPath.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (step === '') bad(`segment[${index}] may not be empty`)
    else for (const fault of isDns1123Subdomain(step)) bad(`segment[${index}]: ${fault}`)
  }
  return errors
}

const certificate = /-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/

/** Whether base64 text holds PEM certificates; nothing at all means the system's trust store. */
export function isCaBundle(base64: string): boolean {
  return base64 === '' || certificate.test(Buffer.from(base64, 'base64').toString('latin1'))
}

export function validateCaBundle(path: FieldPath, base64: string): FieldError[] {
  return isCaBundle(base64) ? [] : [fieldError.invalid(path, base64, 'unable to load root certificates: unable to parse bytes as PEM block')]
}
