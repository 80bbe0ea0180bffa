/** The rules for spec.conversion of a CustomResourceDefinition (L1). Upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation (v1.36). */
import type { CustomResourceConversion } from '#api/gen/types/apiextensions.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1035Label } from '#api/machinery/names'
import { validateCaBundle, validateWebhookService, validateWebhookUrl } from '../webhookClientConfig.ts'

export { isCaBundle } from '../webhookClientConfig.ts'

/** The review versions that this server speaks. */
const reviewVersions = ['v1', 'v1beta1']

export interface ConversionOptions {
  /** Certificates that do not parse keep a definition from being established; before that they are let in. */
  readonly allowInvalidCaBundle: boolean
  readonly requireRecognizedReviewVersion: boolean
}

/** Error paths follow upstream's internal form, which tools know: webhookClientConfig, conversionReviewVersions. */
export function conversionFaults({ strategy, webhook }: Frozen<CustomResourceConversion>, path: FieldPath, options: ConversionOptions): FieldError[] {
  const errors: FieldError[] = []
  if (!strategy) errors.push(fieldError.required(path.child('strategy')))
  else if (strategy !== 'None' && strategy !== 'Webhook') errors.push(fieldError.notSupported(path.child('strategy'), strategy, ['None', 'Webhook']))
  if (strategy === 'Webhook') return [...errors, ...webhookFaults(webhook, path, options)]
  const unwanted = 'should not be set when strategy is not set to Webhook'
  if (webhook?.clientConfig) errors.push(fieldError.forbidden(path.child('webhookClientConfig'), unwanted))
  if (webhook?.conversionReviewVersions?.length) errors.push(fieldError.forbidden(path.child('conversionReviewVersions'), unwanted))
  return errors
}

function webhookFaults(webhook: Frozen<CustomResourceConversion>['webhook'], path: FieldPath, options: ConversionOptions): FieldError[] {
  const at = path.child('webhookClientConfig')
  const errors: FieldError[] = []
  const config = webhook?.clientConfig
  if (!config) errors.push(fieldError.required(at, 'required when strategy is set to Webhook'))
  else {
    const { url, service, caBundle } = config
    if ((url === undefined) === (service === undefined)) errors.push(fieldError.required(at, 'exactly one of url or service is required'))
    else if (url !== undefined) errors.push(...validateWebhookUrl(at.child('url'), url))
    else if (service) errors.push(...validateWebhookService(at.child('service'), service))
    if (caBundle && !options.allowInvalidCaBundle) errors.push(...validateCaBundle(at.child('caBundle'), caBundle))
  }
  return [...errors, ...reviewVersionFaults(webhook?.conversionReviewVersions ?? [], path.child('conversionReviewVersions'), options)]
}

function reviewVersionFaults(versions: readonly string[], path: FieldPath, { requireRecognizedReviewVersion }: ConversionOptions): FieldError[] {
  if (versions.length === 0) return [fieldError.required(path)]
  const errors: FieldError[] = []
  const repeated = repeatedAt(versions)
  for (const [index, version] of versions.entries()) {
    const at = path.index(index)
    if (repeated.has(index)) errors.push(fieldError.invalid(at, version, 'duplicate version'))
    else errors.push(...isDns1035Label(version).map((fault) => fieldError.invalid(at, version, fault)))
  }
  if (requireRecognizedReviewVersion && !versions.some((version) => reviewVersions.includes(version)))
    errors.push(fieldError.invalid(path, versions, `must include at least one of ${reviewVersions.join(', ')}`))
  return errors
}

/** Whether an old definition named a version that servers know; one that never did is not held to it. */
export function recognizesReviewVersion(conversion: Frozen<CustomResourceConversion> | undefined): boolean {
  const versions = conversion?.webhook?.conversionReviewVersions ?? []
  return versions.length === 0 || versions.some((version) => reviewVersions.includes(version))
}
