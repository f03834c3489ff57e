#include "workload/trace/simai_policy.hpp"

namespace weft::workload {

SimaiRules simai_rules(SimaiPolicy policy) {
  using Order = SimaiRules::Order;
  using Ranks = SimaiRules::Ranks;
  SimaiRules rules;
  switch (policy) {
    case SimaiPolicy::transformer:
    case SimaiPolicy::transformer_recomputing:
      break;
    case SimaiPolicy::data_model:
    case SimaiPolicy::model_data:
    case SimaiPolicy::customized:
      rules.input_gradient = SimaiRules::InputGradient::beside_weight_gradient;
      break;
    case SimaiPolicy::data:
      rules.order = Order::weight_gradient_first;
      rules.ranks = Ranks::all_data;
      break;
    case SimaiPolicy::dlrm:
    case SimaiPolicy::dlrm_enhanced:
      rules.order = Order::weight_gradient_first;
      rules.ranks = Ranks::all_data;
      rules.embedding_exchange = true;
      break;
    case SimaiPolicy::micro:
      rules.order = Order::layer_by_layer;
      rules.ranks = Ranks::all_data;
      break;
    case SimaiPolicy::model:
      rules.input_gradient = SimaiRules::InputGradient::beside_weight_gradient;
      rules.ranks = Ranks::all_model;
      break;
    case SimaiPolicy::inference:
      rules.order = Order::forward_only;
      rules.ranks = Ranks::all_model;
      break;
  }
  if (rules.ranks == Ranks::all_data) rules.model_group = SimaiGroup::dp;
  if (rules.ranks == Ranks::all_model) rules.data_group = SimaiGroup::tp;
  return rules;
}

}  // namespace weft::workload
