/** The form of a signer's name, `example.com/signer-name` (L1). Upstream: pkg/apis/core/validation ValidateSignerName (v1.36). */
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Label, isDns1123Subdomain } from '#api/machinery/names'

const maxDomainLength = 253
const maxSignerNameLength = 571

export function validateSignerName(name: string | undefined, path: FieldPath): FieldError[] {
  if (!name) return [fieldError.required(path)]
  const [domain = '', rest = '', ...more] = name.split('/')
  if (!name.includes('/') || more.length > 0)
    return [fieldError.invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")]
  const labels = domain.split('.')
  const labelFaults = (parts: readonly string[], whole: string, check: (part: string) => readonly string[]) =>
    parts.flatMap((part) => check(part).map((fault) => fieldError.invalid(path, whole, `validating label ${JSON.stringify(part)}: ${fault}`)))
  return [
    ...(domain.length > maxDomainLength ? [fieldError.tooLong(path, maxDomainLength)] : []),
    ...labelFaults(labels, domain, isDns1123Label),
    ...(labels.length < 2 ? [fieldError.invalid(path, domain, 'should be a domain with at least two segments separated by dots')] : []),
    ...labelFaults(rest.split('.'), rest, isDns1123Subdomain),
    ...(name.length > maxSignerNameLength ? [fieldError.tooLong(path, maxSignerNameLength)] : []),
  ]
}
