module @calls attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %s: tensor<4xui32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4xui32>, tensor<2x3xui32>, tensor<4x6xf32>) {
    %c = sdy.sharding_constraint %a <@mesh, [{"x"}, {"y"}]> : tensor<4x6xf32>
    %f = stablehlo.custom_call @rms_norm(%c) {api_version = 4 : i32, backend_config = {axes = array<i64: 1>, block = dense<[8, 16]> : tensor<2xi64>, eps = 9.99999997E-7 : f32, exact, kind = "fast \22one\22", nested = {deep = [1 : i32, 2 : i32]}, on = true, small = 200 : ui8}, has_side_effect = true, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=6} need_replication={j}, custom>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %u:2 = stablehlo.custom_call @pair(%f, %a) {backend_config = "opaque", called_computations = [@helper], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1, operand_tuple_indices = []>], sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {?}]>]>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
    %r:2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<4xui32>) -> (tensor<4xui32>, tensor<2x3xui32>)
    %sq = chlo.square %a : tensor<4x6xf32> -> tensor<4x6xf32>
    return %f, %u#0, %u#1, %r#0, %r#1, %sq : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4xui32>, tensor<2x3xui32>, tensor<4x6xf32>
  }
  func.func private @helper(%x: tensor<f32>) -> tensor<f32> {
    %y = stablehlo.exponential %x : tensor<f32>
    return %y : tensor<f32>
  }
}
