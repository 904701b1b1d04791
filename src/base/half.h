/* SPDX-License-Identifier: MIT */
/* Small floats to float. */
#ifndef TNF_BASE_HALF_H
#define TNF_BASE_HALF_H

#include <stdint.h>

float tnf_f16_to_f32(uint16_t bits);
float tnf_bf16_to_f32(uint16_t bits);
float tnf_f8_e4m3fn_to_f32(uint8_t bits);
float tnf_f8_e5m2_to_f32(uint8_t bits);
float tnf_f8_e4m3fnuz_to_f32(uint8_t bits);
float tnf_f8_e5m2fnuz_to_f32(uint8_t bits);
float tnf_f8_e8m0_to_f32(uint8_t bits);
float tnf_f6_e2m3_to_f32(uint8_t bits); /* low 6 bits */
float tnf_f6_e3m2_to_f32(uint8_t bits); /* low 6 bits */
float tnf_f4_e2m1_to_f32(uint8_t bits); /* low 4 bits */

#endif
