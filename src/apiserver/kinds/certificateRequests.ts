/**
 * Refuses certificate requests that are not signed with the key they are for (L3): the strategy, which is pure, has checked their form.
 * Upstream: pkg/apis/certificates/validation validateCSR (v1.36).
 */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { parseCertificateRequest } from '#api/kinds/certificates/pkcs10'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import { signatureFault } from '#client/requestSignature'
import type { KindStorage } from '../registry/kindStorage.ts'
import { nothingReserved } from '../registry/storedResource.ts'

export const certificateRequestStorage: KindStorage = {
  hooks: {
    async beforeCreate(object) {
      const { spec, metadata } = object as unknown as CertificateSigningRequest
      const parsed = parseCertificateRequest(spec?.request ?? '')
      // Validation reports a form that is wrong.
      const fault = typeof parsed === 'string' ? undefined : signatureFault(parsed)
      if (!fault) return nothingReserved
      const errors = [fieldError.invalid(FieldPath.of('spec', 'request'), spec.request, fault)]
      throw invalid({ group: 'certificates.k8s.io', kind: 'CertificateSigningRequest' }, metadata.name ?? '', errors)
    },
  },
}
