/** The form of x-kubernetes-validations, checked before the rules are compiled (L1). Upstream: the same validation, its XValidations part. */
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { resolveFieldPath } from './fieldPaths.ts'
import type { Props } from './schemaWalk.ts'

const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']
const lineBreak = /[\n\r]/

export function ruleTextFaults(props: Props, path: FieldPath): FieldError[] {
  return (props['x-kubernetes-validations'] ?? []).flatMap((rule, index) => {
    const at = path.child('x-kubernetes-validations').index(index)
    const errors: FieldError[] = []
    const { rule: text = '', message = '', messageExpression = '', fieldPath = '', reason } = rule
    if (text.trim() === '') errors.push(fieldError.required(at.child('rule'), 'rule is not specified'))
    else if (message !== '' && message.trim() === '') errors.push(fieldError.invalid(at.child('message'), message, 'must be non-empty if specified'))
    else if (lineBreak.test(message.trim())) errors.push(fieldError.invalid(at.child('message'), message, 'must not contain line breaks'))
    else if (lineBreak.test(text.trim()) && message.trim() === '')
      errors.push(fieldError.required(at.child('message'), 'message must be specified if rule contains line breaks'))
    if (messageExpression !== '' && messageExpression.trim() === '')
      errors.push(fieldError.required(at.child('messageExpression'), 'messageExpression must be non-empty if specified'))
    if (reason !== undefined && !reasons.includes(reason)) errors.push(fieldError.notSupported(at.child('reason'), reason, reasons))
    if (fieldPath !== '' && fieldPath.trim() === '') errors.push(fieldError.invalid(at.child('fieldPath'), fieldPath, 'must be non-empty if specified'))
    if (lineBreak.test(fieldPath)) errors.push(fieldError.invalid(at.child('fieldPath'), fieldPath, 'must not contain line breaks'))
    if (fieldPath !== '' && !resolveFieldPath(fieldPath, props, { arrays: true }).ok)
      errors.push(fieldError.invalid(at.child('fieldPath'), fieldPath, 'must be a valid path'))
    return errors
  })
}
